// Work on a trained model: generating and evaluating. Jobs of their own, whose
// output goes to the job's watch stream.
#ifndef LOCKSTEP_WORKER_TRAIN_ACTIONS_H_
#define LOCKSTEP_WORKER_TRAIN_ACTIONS_H_

#include "absl/status/status.h"
#include "lockstep/v1/worker_service.pb.h"
#include "worker/dist/store.h"
#include "worker/train/rank_context.h"

namespace lockstep {

// Runs the assignment's action on its checkpoint's model. UNIMPLEMENTED for an
// action that doesn't exist yet.
absl::Status RunAction(const RankContext& context,
                       const v1::RankAssignment& assignment, Store& store);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_ACTIONS_H_
