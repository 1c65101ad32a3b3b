// What a mistyped word was most likely meant to be.
#ifndef LOCKSTEP_COMMON_SPEC_NEAREST_WORD_H_
#define LOCKSTEP_COMMON_SPEC_NEAREST_WORD_H_

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// The entry of `known` that takes the fewest insertions, deletions, changes and
// swaps of neighbours to make of `word` (optimal string alignment; case is
// ignored); the first of equals, empty if `known` is.
std::string NearestWord(std::string_view word,
                        const std::vector<std::string>& known);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SPEC_NEAREST_WORD_H_
