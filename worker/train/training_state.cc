#include "worker/train/training_state.h"

#include "common/spec/job_spec.h"
#include "common/status_macros.h"

namespace lockstep {

absl::StatusOr<TrainingState> MakeTrainingState(Device& device,
                                                const ModelSpec& model,
                                                const TrainingSpec& training,
                                                Purpose purpose) {
  TrainingState state;
  state.model_spec = model;
  state.training_spec = training;
  Stream& stream = device.stream();
  ASSIGN_OR_RETURN(state.store,
                   ParameterStore::Create(stream, DescribeModel(model),
                                          ComputeDType(training.precision),
                                          purpose == Purpose::kTrain
                                              ? GradientStorage::kAllocate
                                              : GradientStorage::kNone));
  if (purpose == Purpose::kTrain) {
    ASSIGN_OR_RETURN(
        state.optimizer,
        Optimizer::Create(stream, training.optimizer, *state.store));
  }
  state.model = std::make_unique<TransformerModel>(model, *state.store);
  return state;
}

}  // namespace lockstep
