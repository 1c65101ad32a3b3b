// TrainingState: a model in training: parameters, optimizer, model, step.
#ifndef LOCKSTEP_WORKER_TRAIN_TRAINING_STATE_H_
#define LOCKSTEP_WORKER_TRAIN_TRAINING_STATE_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/spec/model_spec.h"
#include "common/spec/training_spec.h"
#include "worker/nn/parameter_store.h"
#include "worker/nn/transformer_model.h"
#include "worker/optim/optimizer.h"
#include "worker/parallel/data/data_parallel.h"
#include "worker/parallel/pipeline/pipeline.h"
#include "worker/train/rank_context.h"

namespace lockstep {

struct TrainingState {
  ModelSpec model_spec;
  TrainingSpec training_spec;
  std::unique_ptr<ParameterStore> store;
  // Null when the model is only used.
  std::unique_ptr<Optimizer> optimizer;
  // This rank's stages of the model, chunk by chunk, and what runs them.
  std::vector<std::unique_ptr<TransformerModel>> stages;
  std::unique_ptr<Pipeline> pipeline;
  // What the ranks that share its layers do together.
  std::unique_ptr<TensorRegions> regions;
  // What those that share its sequences do.
  std::unique_ptr<SequenceAttention> attention;
  // This rank's part of a micro-batch.
  BatchPlace place;
  // Goes along on every pass of the model.
  std::unique_ptr<DataParallel> parallel;
  // Optimizer steps done, and samples of the global sequence used.
  int64_t step = 0;
  int64_t data_position = 0;
};

// Whether the loss that this rank finds counts: others find the same, or none.
bool LossCounts(const RankContext& context, const TrainingState& state);

// Adds over the ranks that hold parts of a replica of `model`; null where one
// holds all. `store` and the groups of `context` must outlive it.
ShardSum ShardSumOf(const RankContext& context, const ModelSpec& model,
                    const ParameterStore& store);

enum class Purpose : uint8_t { kTrain, kUse };

// Memory only: values and optimizer states are zero. The groups of `context`
// must outlive it.
absl::StatusOr<TrainingState> MakeTrainingState(const RankContext& context,
                                                const ModelSpec& model,
                                                const TrainingSpec& training,
                                                Purpose purpose);

// Sets initial values, on all ranks; `alive` is called every second or so.
absl::Status Initialize(const RankContext& context, TrainingState& state,
                        const std::function<void()>& alive = {});
// After this rank's master values were set: brings what is computed with up to
// date, on all ranks.
absl::Status PublishMasters(const RankContext& context, TrainingState& state);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_TRAINING_STATE_H_
