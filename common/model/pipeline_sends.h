// How far a stage may run ahead of those that take what it gives.
#ifndef LOCKSTEP_COMMON_MODEL_PIPELINE_SENDS_H_
#define LOCKSTEP_COMMON_MODEL_PIPELINE_SENDS_H_

#include <cstdint>

namespace lockstep {

// Messages that a rank of a pipeline leaves under way before it waits for the
// oldest to be taken. Two let it compute meanwhile; interleaved stages may
// take theirs in another order than they were made, within one round of all.
constexpr int64_t MostSendsUnderWay(int64_t ranks, int64_t chunks) {
  return chunks == 1 ? 2 : 2 * ranks * chunks;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MODEL_PIPELINE_SENDS_H_
