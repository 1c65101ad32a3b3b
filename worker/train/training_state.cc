#include "worker/train/training_state.h"

#include "common/spec/job_spec.h"
#include "common/status_macros.h"
#include "worker/train/gather.h"

namespace lockstep {

ShardSum ShardSumOf(const RankContext& context) {
  ProcessGroup& shards = context.shards;
  if (shards.size() == 1) return nullptr;
  return [&shards](absl::Span<double> values) {
    return SumOverRanks(shards, values);
  };
}

absl::StatusOr<TrainingState> MakeTrainingState(const RankContext& context,
                                                const ModelSpec& model,
                                                const TrainingSpec& training,
                                                Purpose purpose) {
  TrainingState state;
  state.model_spec = model;
  state.training_spec = training;
  Stream& stream = context.device.stream();
  ProcessGroup& shards = context.shards;
  Sharding sharding;
  if (shards.size() > 1) {
    sharding = {shards.size(), shards.rank(),
                static_cast<int>(context.layout.zero_stage())};
  }
  ASSIGN_OR_RETURN(state.store,
                   ParameterStore::Create(stream, DescribeModel(model),
                                          ComputeDType(training.precision),
                                          purpose == Purpose::kTrain
                                              ? GradientStorage::kAllocate
                                              : GradientStorage::kNone,
                                          sharding));
  if (purpose == Purpose::kTrain) {
    ASSIGN_OR_RETURN(state.optimizer,
                     Optimizer::Create(stream, training.optimizer, *state.store,
                                       ShardSumOf(context)));
  }
  state.model = std::make_unique<TransformerModel>(model, *state.store);
  state.parallel = MakeDataParallel(
      shards, context.replicas, stream, *state.store,
      model.task == v1::TASK_LANGUAGE_MODEL && model.tied_embeddings);
  return state;
}

absl::Status Initialize(const RankContext& context, TrainingState& state,
                        const std::function<void()>& alive) {
  state.store->Initialize(state.training_spec.seed, alive);
  return PublishMasters(context, state);
}

absl::Status PublishMasters(const RankContext& context, TrainingState& state) {
  RETURN_IF_ERROR(state.store->RefreshCompute(context.device.stream()));
  return state.parallel->PublishParameters();
}

}  // namespace lockstep
