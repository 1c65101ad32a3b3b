// Words out of an input, short enough for a message: what is read may be as
// long as the file.
#ifndef LOCKSTEP_WORKER_DATA_EXCERPT_H_
#define LOCKSTEP_WORKER_DATA_EXCERPT_H_

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// `text`, or its first 100 bytes or fewer (whole characters) and "...".
std::string Excerpt(std::string_view text);

// "a, b, ...": excerpts of the first ten words.
std::string ExcerptOfList(const std::vector<std::string>& words);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_EXCERPT_H_
