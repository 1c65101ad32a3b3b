// TrainStep: one optimizer step on one rank.
#ifndef LOCKSTEP_WORKER_TRAIN_TRAIN_STEP_H_
#define LOCKSTEP_WORKER_TRAIN_TRAIN_STEP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/owned_tensor.h"
#include "kernels/step_scalars.h"
#include "worker/data/batch_loader.h"
#include "worker/optim/update_range.h"
#include "worker/train/rank_context.h"
#include "worker/train/training_state.h"

namespace lockstep {

struct StepResult {
  // Mean over the global batch's valid targets, in nats.
  double loss = 0.0;
  // Of the global batch's gradient, before clipping.
  double grad_norm = 0.0;
  double learning_rate = 0.0;
  // Tokens that the step learnt from, all ranks together: valid targets of a
  // language model, input tokens of a classifier.
  int64_t tokens = 0;
};

// Threads: one. Context and state must outlive it.
class TrainStep {
 public:
  static absl::StatusOr<std::unique_ptr<TrainStep>> Create(
      const RankContext& context, TrainingState& state, int64_t total_steps);

  // Forward, backward, reduction, clipping and update; then the state's step
  // and data position move on. With a loss or gradient norm that is not finite
  // nothing is updated, and the error (cause nan_loss) names step and tensor.
  absl::StatusOr<StepResult> Run(const StepBatch& batch);

  // The first half of Run: gradients of the global batch in the store; loss and
  // tokens are set. For tests of gradients.
  absl::StatusOr<StepResult> AccumulateGradients(const StepBatch& batch);

 private:
  TrainStep(const RankContext& context, TrainingState& state,
            int64_t total_steps);
  // The micro-batches of `batch` as the pipeline takes them.
  PipelineRun RunOf(const StepBatch& batch, LossSums& sums);
  // Copies scalars_ to the device.
  absl::Status PublishScalars();
  absl::StatusOr<double> GradientNorm();
  // What to say when step `state_.step + 1` went wrong.
  absl::Status NotFinite(double loss, double norm);

  const RankContext& context_;
  TrainingState& state_;
  const int64_t total_steps_;
  // Of this rank's gradients, those that it speaks for.
  const std::vector<UpdateRange> norm_ranges_;
  StepScalars scalars_;
  OwnedTensor device_scalars_;
  OwnedTensor norm_sum_;  // one fp64
  // Of gradients, so far: the same on all ranks.
  uint64_t reductions_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_TRAIN_STEP_H_
