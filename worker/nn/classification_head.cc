#include "worker/nn/classification_head.h"

#include <utility>

#include "common/status_macros.h"
#include "kernels/ops/embedding.h"
#include "worker/nn/loss.h"
#include "worker/nn/transformer_block.h"

namespace lockstep {
namespace {

// One for each sample.
Tensor TargetsOf(const PassContext& context) {
  return context.batch.targets.Slice(0, context.batch.samples);
}

}  // namespace

ClassificationHead::ClassificationHead(const ModelPart& part,
                                       const ParameterStore& store)
    : norm_(MakeNorm(part.local, store, "final_norm")),
      output_(store.Get("classifier.weight"), store.Get("classifier.bias")) {}

absl::StatusOr<OwnedTensor> ClassificationHead::Pool(
    const PassContext& context, Residual input, NormActivations& normed) const {
  const int64_t cols = input.sum.cols();
  RETURN_IF_ERROR(norm_.Forward(context, std::move(input), normed));
  OwnedTensor storage;
  ASSIGN_OR_RETURN(const Tensor whole,
                   context.regions.Whole(context, normed.normed, storage));
  ASSIGN_OR_RETURN(OwnedTensor pooled,
                   context.Activation(context.batch.samples, cols));
  RETURN_IF_ERROR(ops::SegmentMeanForward(context.stream, whole,
                                          context.batch.sample_bounds, pooled));
  return pooled;
}

absl::StatusOr<OwnedTensor> ClassificationHead::LogitsOf(
    const PassContext& context, const Tensor& pooled) const {
  ASSIGN_OR_RETURN(
      OwnedTensor logits,
      AllocateTensor(context.stream, DType::kFloat32,
                     {pooled.rows(), output_.out_width()},
                     MemoryCategory::kActivation, RowPadding::kPadded));
  RETURN_IF_ERROR(output_.Forward(context, pooled, logits));
  return logits;
}

absl::StatusOr<OwnedTensor> ClassificationHead::ForwardBackward(
    const PassContext& context, Residual input, LossSums& sums) const {
  const int64_t own_rows = input.sum.rows(), cols = input.sum.cols();
  NormActivations normed;
  ASSIGN_OR_RETURN(OwnedTensor pooled, Pool(context, std::move(input), normed));
  ASSIGN_OR_RETURN(OwnedTensor logits, LogitsOf(context, pooled));
  RETURN_IF_ERROR(AddWholeLoss(context, logits, TargetsOf(context),
                               LogitsGradient::kInPlace, sums));
  OwnedTensor storage;
  ASSIGN_OR_RETURN(const Tensor dlogits,
                   AsComputeType(context, logits, storage));
  RETURN_IF_ERROR(output_.BackwardWeights(context, pooled, dlogits));
  ASSIGN_OR_RETURN(OwnedTensor dpooled,
                   context.Activation(pooled->rows(), cols));
  RETURN_IF_ERROR(output_.BackwardInput(context, dlogits, dpooled));
  // All ranks compute the same from here to there: each takes its own rows.
  ASSIGN_OR_RETURN(OwnedTensor dwhole,
                   context.Activation(context.batch.rows, cols));
  RETURN_IF_ERROR(ops::SegmentMeanBackward(
      context.stream, dpooled, context.batch.sample_bounds, dwhole));
  ASSIGN_OR_RETURN(OwnedTensor dsum, context.Activation(own_rows, cols));
  RETURN_IF_ERROR(
      norm_.BackwardFirst(context, normed, context.regions.Own(dwhole), dsum));
  return dsum;
}

absl::Status ClassificationHead::Evaluate(const PassContext& context,
                                          Residual input,
                                          LossSums& sums) const {
  ASSIGN_OR_RETURN(OwnedTensor logits, Logits(context, std::move(input)));
  return AddWholeLoss(context, logits, TargetsOf(context),
                      LogitsGradient::kNone, sums);
}

absl::StatusOr<OwnedTensor> ClassificationHead::Logits(
    const PassContext& context, Residual input) const {
  NormActivations normed;
  ASSIGN_OR_RETURN(OwnedTensor pooled, Pool(context, std::move(input), normed));
  return LogitsOf(context, pooled);
}

}  // namespace lockstep
