#include "worker/train/training_state.h"

#include <vector>

#include "common/model/model_part.h"
#include "common/spec/job_spec.h"
#include "common/status_macros.h"
#include "worker/parallel/tensor/gradient_sum.h"
#include "worker/parallel/tensor/tensor_parallel.h"
#include "worker/train/gather.h"

namespace lockstep {

ShardSum ShardSumOf(const RankContext& context, const ModelSpec& model,
                    const ParameterStore& store) {
  if (context.world.size() == context.replicas.size()) return nullptr;
  const size_t model_tensors = DescribeModel(model).size();
  return [&context, &store, model_tensors](absl::Span<double> values) {
    // All ranks sum a value of each of the model's tensors, of which replicas
    // have the same.
    std::vector<double> all(model_tensors, 0.0);
    if (context.replicas.rank() == 0) {
      for (size_t i = 0; i < values.size(); ++i) {
        all[store.tensors()[i].index] = values[i];
      }
    }
    RETURN_IF_ERROR(SumOverRanks(context.world, absl::MakeSpan(all)));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = all[store.tensors()[i].index];
    }
    return absl::OkStatus();
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
  RETURN_IF_ERROR(CheckTensorParallel(model, context.tensor.size()));
  const SequenceParallel sequence = context.layout.sequence_parallel()
                                        ? SequenceParallel::kOn
                                        : SequenceParallel::kOff;
  const ModelPart part =
      PartOf(model, {context.tensor.rank(), context.tensor.size(),
                     sequence == SequenceParallel::kOn});
  ASSIGN_OR_RETURN(state.store,
                   ParameterStore::Create(stream, DescribePart(part),
                                          ComputeDType(training.precision),
                                          purpose == Purpose::kTrain
                                              ? GradientStorage::kAllocate
                                              : GradientStorage::kNone,
                                          sharding));
  if (purpose == Purpose::kTrain) {
    ASSIGN_OR_RETURN(
        state.optimizer,
        Optimizer::Create(stream, training.optimizer, *state.store,
                          ShardSumOf(context, model, *state.store)));
  }
  state.model = std::make_unique<TransformerModel>(part, *state.store);
  state.regions = MakeTensorRegions(context.tensor, sequence);
  state.parallel = WithGradientSum(
      context.tensor, *state.store,
      MakeDataParallel(
          shards, context.replicas, stream, *state.store,
          model.task == v1::TASK_LANGUAGE_MODEL && model.tied_embeddings));
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
