#include "worker/data/excerpt.h"

#include <algorithm>

#include "common/utf8.h"
#include "worker/data/str_cat.h"

namespace lockstep {

std::string Excerpt(std::string_view text) {
  constexpr size_t kMostBytes = 100;
  if (text.size() <= kMostBytes) return std::string(text);
  size_t end = kMostBytes;
  // Bytes that are no UTF-8 have no characters to keep whole.
  for (size_t back = 0; back < 4 && !StartsUtf8(text[end]); ++back) --end;
  return StrCat(text.substr(0, end), "...");
}

std::string ExcerptOfList(const std::vector<std::string>& words) {
  constexpr size_t kMostWords = 10;
  std::string list;
  for (size_t i = 0; i < std::min(words.size(), kMostWords); ++i) {
    if (i > 0) list += ", ";
    list += Excerpt(words[i]);
  }
  return words.size() > kMostWords ? list + ", ..." : list;
}

}  // namespace lockstep
