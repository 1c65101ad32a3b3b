// Trainer: a training job on one rank, from data to the last checkpoint.
#ifndef LOCKSTEP_WORKER_TRAIN_TRAINER_H_
#define LOCKSTEP_WORKER_TRAIN_TRAINER_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/v1/worker_service.pb.h"
#include "worker/data/prepared_data.h"
#include "worker/dist/store.h"
#include "worker/train/checkpointing.h"
#include "worker/train/rank_context.h"
#include "worker/train/training_state.h"

namespace lockstep {

// Threads: one. Context, assignment and data must outlive it.
class Trainer {
 public:
  // Builds the model, with initial values or those of the assignment's
  // checkpoint, and reports what is to be done.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      const RankContext& context, const v1::RankAssignment& assignment,
      const PreparedData& data);

  // Trains to the last step, evaluating and saving on the way and at the end.
  absl::Status Run();

  TrainingState& state() { return state_; }
  int64_t total_steps() const { return total_steps_; }

 private:
  Trainer(const RankContext& context, const v1::RankAssignment& assignment,
          const PreparedData& data);
  absl::Status Start();
  absl::Status Evaluate();
  absl::Status Save();
  void ReportFacts();
  void ReportMemory();
  void ReportStep(const v1::StepReport& step);

  const RankContext& context_;
  const v1::RankAssignment& assignment_;
  const PreparedData& data_;
  TrainingState state_;
  int64_t total_steps_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_TRAINER_H_
