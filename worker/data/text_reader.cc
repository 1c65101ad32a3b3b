#include "worker/data/text_reader.h"

#include <string>
#include <string_view>

#include "common/status_macros.h"
#include "common/utf8.h"

namespace lockstep {
namespace {

// Where a piece may end that starts `text`: after its last newline, else
// before its last space, else between two characters.
size_t PieceEnd(std::string_view text) {
  if (const size_t newline = text.rfind('\n'); newline != text.npos) {
    return newline + 1;
  }
  if (const size_t space = text.rfind(' '); space != text.npos && space > 0) {
    return space;
  }
  constexpr size_t kLongestCharacter = 4;
  for (size_t back = 1; back <= kLongestCharacter && back < text.size();
       ++back) {
    if (StartsUtf8(text[text.size() - back])) return text.size() - back;
  }
  return text.size();
}

}  // namespace

absl::Status ReadText(BlockReader& reader, DocumentVisitor& visitor) {
  RETURN_IF_ERROR(visitor.Begin({reader.file().display, 1}, {}));
  std::string held;
  while (true) {
    ASSIGN_OR_RETURN(const std::string_view block, reader.Next());
    if (block.empty()) break;
    visitor.Consumed(static_cast<int64_t>(block.size()));
    held.append(block);
    const size_t end = PieceEnd(held);
    RETURN_IF_ERROR(visitor.Text(std::string_view(held).substr(0, end)));
    held.erase(0, end);
  }
  if (!held.empty()) RETURN_IF_ERROR(visitor.Text(held));
  return visitor.End();
}

}  // namespace lockstep
