// Guard: a check that what ranks hold alike is equal, bit by bit. Layouts keep
// it so by construction; a device or a link that errs, or a bug, does not.
#ifndef LOCKSTEP_WORKER_TRAIN_GUARD_H_
#define LOCKSTEP_WORKER_TRAIN_GUARD_H_

#include "absl/status/status.h"
#include "worker/train/rank_context.h"
#include "worker/train/training_state.h"

namespace lockstep {

// Compares hashes of parameters and optimizer states: between replicas, of what
// is not split between the ranks that share each layer, and of an embedding
// that two stages hold. All ranks call it after the same step. DATA_LOSS on the
// ranks that see a difference (cause device_fault), naming the first tensor,
// what of it, and both ranks.
absl::Status CheckEqualAcrossRanks(const RankContext& context,
                                   const TrainingState& state);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_GUARD_H_
