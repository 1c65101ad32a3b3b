#include "worker/train/training_state.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/model/model_part.h"
#include "common/model/pipeline_stages.h"
#include "common/spec/job_spec.h"
#include "common/status_macros.h"
#include "worker/parallel/context/context_parallel.h"
#include "worker/parallel/tensor/gradient_sum.h"
#include "worker/parallel/tensor/tensor_parallel.h"
#include "worker/train/gather.h"

namespace lockstep {
namespace {

// The units of this rank's stages.
absl::StatusOr<std::vector<Portion>> UnitsOf(const RankContext& context,
                                             const ModelSpec& model,
                                             const TrainingSpec& training,
                                             int chunks) {
  const int ranks = context.stages.size();
  RETURN_IF_ERROR(CheckPipelineParallel(model, ranks, chunks));
  const std::vector<Portion> all =
      PlanStages(model, training.sequence_length, ranks * chunks);
  std::vector<Portion> own;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    own.push_back(all[chunk * ranks + context.stages.rank()]);
  }
  return own;
}

}  // namespace

bool LossCounts(const RankContext& context, const TrainingState& state) {
  return context.tensor.rank() == 0 && state.pipeline->has_head();
}

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
  RETURN_IF_ERROR(CheckContextParallel(model, context.layout));
  const SequenceParallel sequence = context.layout.sequence_parallel()
                                        ? SequenceParallel::kOn
                                        : SequenceParallel::kOff;
  const int chunks =
      static_cast<int>(std::max<int64_t>(1, context.layout.virtual_stages()));
  ASSIGN_OR_RETURN(std::vector<Portion> units,
                   UnitsOf(context, model, training, chunks));
  const ModelPart part = PartOf(model,
                                {context.tensor.rank(), context.tensor.size(),
                                 sequence == SequenceParallel::kOn},
                                units);
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
  std::vector<const TransformerModel*> stages;
  for (const Portion& chunk : units) {
    state.stages.push_back(
        std::make_unique<TransformerModel>(part, chunk, *state.store));
    stages.push_back(state.stages.back().get());
  }
  state.pipeline = std::make_unique<Pipeline>(
      PipelinePlace{context.stages.rank(), context.stages.size(),
                    context.peers},
      std::move(stages));
  state.regions = MakeTensorRegions(context.tensor, sequence);
  const v1::ContextParallelKind kind = context.layout.cp_kind();
  state.attention = MakeSequenceAttention(context.sequence, kind);
  state.place = {CutOf(context.sequence, kind), state.regions->row_part()};
  state.parallel = WithGradientSum(
      context.tensor, *state.store,
      MakeDataParallel(shards, context.replicas, stream, *state.store,
                       {part.tied() && context.stages.size() == 1,
                        context.stages.size() == 1}));
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
