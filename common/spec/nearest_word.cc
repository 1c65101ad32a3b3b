#include "common/spec/nearest_word.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace lockstep {
namespace {

// Longer words are cut: nothing we know is as long.
constexpr size_t kMostCharacters = 64;

size_t Distance(const std::string& a, const std::string& b) {
  // Rows i-2, i-1 and i of the table of prefix distances.
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

std::string NearestWord(std::string_view word,
                        const std::vector<std::string>& known) {
  const std::string lower =
      absl::AsciiStrToLower(std::string(word.substr(0, kMostCharacters)));
  std::string nearest;
  size_t least = 0;
  for (const std::string& candidate : known) {
    const size_t distance = Distance(lower, absl::AsciiStrToLower(candidate));
    if (nearest.empty() || distance < least) {
      nearest = candidate;
      least = distance;
    }
  }
  return nearest;
}

}  // namespace lockstep
