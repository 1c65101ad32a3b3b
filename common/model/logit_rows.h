// How many rows of logits exist at a time: what the head computes with and the
// memory count counts.
#ifndef LOCKSTEP_COMMON_MODEL_LOGIT_ROWS_H_
#define LOCKSTEP_COMMON_MODEL_LOGIT_ROWS_H_

#include <algorithm>
#include <cstdint>

namespace lockstep {

// Some 64 MiB of fp32 logits, but at least 256 rows, below which products slow
// down, and a multiple of 64.
constexpr int64_t LogitRows(int64_t vocabulary) {
  constexpr int64_t kTargetBytes = int64_t{64} << 20;
  const int64_t rows = kTargetBytes / (4 * std::max<int64_t>(vocabulary, 1));
  return std::max<int64_t>(256, rows / 64 * 64);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MODEL_LOGIT_ROWS_H_
