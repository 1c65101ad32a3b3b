#include "worker/train/train_step.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/spec/job_spec.h"
#include "common/status_macros.h"
#include "kernels/ops/copy.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/optimizer.h"
#include "worker/optim/lr_schedule.h"
#include "worker/optim/trust_ratio.h"
#include "worker/parallel/pipeline/tied_embedding.h"
#include "worker/train/failure.h"
#include "worker/train/gather.h"

namespace lockstep {
namespace {

constexpr int64_t kScalarWords = sizeof(StepScalars) / sizeof(int32_t);

// As PyTorch's clip_grad_norm_: the small constant keeps the factor at most 1
// for a norm just above the limit.
float ClipFactor(const TrainingSpec& spec, double norm) {
  if (!spec.clip_grad_norm.has_value()) return 1.0f;
  return static_cast<float>(
      std::min(1.0, *spec.clip_grad_norm / (norm + 1e-6)));
}

}  // namespace

TrainStep::TrainStep(const RankContext& context, TrainingState& state,
                     int64_t total_steps)
    : context_(context),
      state_(state),
      total_steps_(total_steps),
      norm_ranges_(CountedRanges(*state.store)) {}

absl::StatusOr<std::unique_ptr<TrainStep>> TrainStep::Create(
    const RankContext& context, TrainingState& state, int64_t total_steps) {
  std::unique_ptr<TrainStep> step(new TrainStep(context, state, total_steps));
  Stream& stream = context.device.stream();
  ASSIGN_OR_RETURN(step->device_scalars_,
                   AllocateTensor(stream, DType::kInt32, {kScalarWords},
                                  MemoryCategory::kBuffer, RowPadding::kDense));
  ASSIGN_OR_RETURN(step->norm_sum_,
                   AllocateTensor(stream, DType::kInt32, {2},
                                  MemoryCategory::kBuffer, RowPadding::kDense));
  return step;
}

absl::Status TrainStep::PublishScalars() {
  return ops::CopyFromHost(context_.device.stream(), &scalars_,
                           device_scalars_);
}

PipelineRun TrainStep::RunOf(const StepBatch& batch, LossSums& sums) {
  PipelineRun run = {context_.device.stream(),
                     state_.place,
                     *state_.parallel,
                     {},
                     nullptr,
                     sums};
  // Empty passes come first: the last one overlaps most.
  const auto own = static_cast<int64_t>(batch.micro_batches.size());
  for (int64_t i = own; i < batch.most_micro_batches; ++i) {
    run.micro_batches.push_back(nullptr);
  }
  for (const MicroBatch& micro_batch : batch.micro_batches) {
    run.micro_batches.push_back(&micro_batch);
  }
  run.context = [this](const DeviceBatch& staged) -> PassContext {
    return {context_.device.stream(),
            ComputeDType(state_.training_spec.precision),
            device_scalars_->data<StepScalars>(),
            staged,
            *state_.regions,
            *state_.attention,
            static_cast<float>(state_.model_spec.dropout),
            state_.training_spec.seed,
            context_.layout.activation_checkpoint()};
  };
  return run;
}

absl::StatusOr<StepResult> TrainStep::AccumulateGradients(
    const StepBatch& batch) {
  Stream& stream = context_.device.stream();
  const TrainingSpec& spec = state_.training_spec;
  scalars_ = StepScalars();
  scalars_.step = static_cast<uint32_t>(state_.step + 1);
  scalars_.inverse_valid_tokens =
      1.0f / static_cast<float>(std::max<int64_t>(1, batch.valid_targets));
  SetBiasCorrections(spec.optimizer, state_.step + 1, scalars_);
  RETURN_IF_ERROR(PublishScalars());
  RETURN_IF_ERROR(state_.store->ZeroGradients(stream));

  LossSums sums;
  RETURN_IF_ERROR(
      state_.pipeline->Train(context_.layout.schedule(), RunOf(batch, sums)));
  RETURN_IF_ERROR(state_.parallel->FinishGradients());
  RETURN_IF_ERROR(SumTiedGradients(state_.pipeline->place(), stream,
                                   *state_.store, ++reductions_));
  std::array<double, 2> totals = {sums.loss, static_cast<double>(batch.rows)};
  if (!LossCounts(context_, state_)) totals = {};
  // Rows are a share's, losses a rank's own rows'.
  if (context_.sequence.rank() > 0) totals[1] = 0.0;
  RETURN_IF_ERROR(SumOverRanks(context_.world, absl::MakeSpan(totals)));
  StepResult result;
  result.loss = totals[0] /
                static_cast<double>(std::max<int64_t>(1, batch.valid_targets));
  result.tokens = state_.model_spec.task == v1::TASK_CLASSIFICATION
                      ? static_cast<int64_t>(totals[1])
                      : batch.valid_targets;
  return result;
}

absl::StatusOr<double> TrainStep::GradientNorm() {
  Stream& stream = context_.device.stream();
  const ParameterStore& store = *state_.store;
  RETURN_IF_ERROR(ops::Zero(stream, norm_sum_));
  for (const UpdateRange& range : norm_ranges_) {
    RETURN_IF_ERROR(
        ops::SumOfSquares(stream,
                          store.gradient(range.segment)
                              .Slice(range.range.begin, range.range.size()),
                          norm_sum_->data<double>()));
  }
  double sum = 0.0;
  RETURN_IF_ERROR(ops::CopyToHost(stream, norm_sum_, &sum));
  if (context_.world.size() > context_.replicas.size()) {
    // Replicas have the same gradients: the first one counts.
    if (context_.replicas.rank() > 0) sum = 0.0;
    RETURN_IF_ERROR(SumOverRanks(context_.world, absl::MakeSpan(&sum, 1)));
  }
  return std::sqrt(sum);
}

absl::StatusOr<StepResult> TrainStep::Run(const StepBatch& batch) {
  ASSIGN_OR_RETURN(StepResult result, AccumulateGradients(batch));
  ASSIGN_OR_RETURN(result.grad_norm, GradientNorm());
  if (!std::isfinite(result.loss) || !std::isfinite(result.grad_norm)) {
    return NotFinite(result.loss, result.grad_norm);
  }
  const TrainingSpec& spec = state_.training_spec;
  result.learning_rate =
      LearningRateAt(spec.schedule, spec.optimizer.learning_rate,
                     state_.step + 1, total_steps_);
  scalars_.learning_rate = static_cast<float>(result.learning_rate);
  scalars_.clip_factor = ClipFactor(spec, result.grad_norm);
  RETURN_IF_ERROR(PublishScalars());
  RETURN_IF_ERROR(state_.optimizer->Step(context_.device.stream(),
                                         device_scalars_->data<StepScalars>()));
  RETURN_IF_ERROR(state_.parallel->PublishParameters());
  ++state_.step;
  state_.data_position = batch.first_position + batch.samples;
  return result;
}

absl::Status TrainStep::NotFinite(double loss, double norm) {
  const ParameterStore& store = *state_.store;
  std::string own;
  ASSIGN_OR_RETURN(
      const std::vector<double> norms,
      GradientNorms(context_.device.stream(), store,
                    UpdateRanges(store, RangeMerging::kNone),
                    ShardSumOf(context_, state_.model_spec, store)));
  const auto first = std::find_if(norms.begin(), norms.end(), [](double value) {
    return !std::isfinite(value);
  });
  if (first != norms.end()) {
    own = store.tensors()[first - norms.begin()].name;
  }
  // Ranks may hold other layers each: all name the first that any of them
  // found.
  ASSIGN_OR_RETURN(const std::vector<std::string> found,
                   GatherBytes(context_.world, own));
  std::string where = "no single gradient";
  for (const std::string& name : found) {
    if (name.empty()) continue;
    where = absl::StrCat("the gradient of ", name);
    break;
  }
  return WithCause(
      absl::FailedPreconditionError(absl::StrCat(
          "step ", state_.step + 1, ": loss is ", loss, ", gradient norm is ",
          norm, "; the first tensor that is not finite is ", where,
          ". Nothing of this step was applied; a lower learning rate, warm-up "
          "or clip_grad_norm usually helps")),
      v1::CAUSE_NAN_LOSS);
}

}  // namespace lockstep
