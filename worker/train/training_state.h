// TrainingState: a model in training: parameters, optimizer, model, step.
#ifndef LOCKSTEP_WORKER_TRAIN_TRAINING_STATE_H_
#define LOCKSTEP_WORKER_TRAIN_TRAINING_STATE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/spec/model_spec.h"
#include "common/spec/training_spec.h"
#include "kernels/device.h"
#include "worker/nn/parameter_store.h"
#include "worker/nn/transformer_model.h"
#include "worker/optim/optimizer.h"

namespace lockstep {

struct TrainingState {
  ModelSpec model_spec;
  TrainingSpec training_spec;
  std::unique_ptr<ParameterStore> store;
  // Null when the model is only used.
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<TransformerModel> model;
  // Optimizer steps done, and samples of the global sequence used.
  int64_t step = 0;
  int64_t data_position = 0;
};

enum class Purpose : uint8_t { kTrain, kUse };

// Memory only: values are uninitialised, optimizer states zero.
absl::StatusOr<TrainingState> MakeTrainingState(Device& device,
                                                const ModelSpec& model,
                                                const TrainingSpec& training,
                                                Purpose purpose);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_TRAINING_STATE_H_
