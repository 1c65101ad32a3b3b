// One pass over validation data, shared among the ranks.
#ifndef LOCKSTEP_WORKER_TRAIN_EVALUATOR_H_
#define LOCKSTEP_WORKER_TRAIN_EVALUATOR_H_

#include "absl/status/statusor.h"
#include "lockstep/v1/step_report.pb.h"
#include "worker/data/dataset.h"
#include "worker/train/rank_context.h"
#include "worker/train/training_state.h"

namespace lockstep {

// All ranks call it; all get the same report. `micro_batch`: samples of one
// forward pass.
absl::StatusOr<v1::EvaluationReport> Evaluate(const RankContext& context,
                                              const TrainingState& state,
                                              const Dataset& dataset,
                                              int64_t micro_batch);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_EVALUATOR_H_
