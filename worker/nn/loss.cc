#include "worker/nn/loss.h"

#include <vector>

#include "absl/functional/function_ref.h"
#include "common/status_macros.h"
#include "kernels/ops/copy.h"
#include "kernels/ops/elementwise.h"

namespace lockstep {

namespace {

// Adds up what `cross_entropy(loss, correct)` finds for `rows` rows.
absl::Status AddUp(
    const PassContext& context, int64_t rows,
    absl::FunctionRef<absl::Status(const Tensor& loss, const Tensor& correct)>
        cross_entropy,
    LossSums& sums) {
  ASSIGN_OR_RETURN(OwnedTensor loss, context.Statistics(rows));
  ASSIGN_OR_RETURN(
      OwnedTensor correct,
      AllocateTensor(context.stream, DType::kInt32, {rows},
                     MemoryCategory::kActivation, RowPadding::kDense));
  RETURN_IF_ERROR(cross_entropy(loss, correct));
  std::vector<float> losses(rows);
  std::vector<int32_t> hits(rows);
  RETURN_IF_ERROR(ops::CopyToHost(context.stream, loss, losses.data()));
  RETURN_IF_ERROR(ops::CopyToHost(context.stream, correct, hits.data()));
  for (int64_t i = 0; i < rows; ++i) {
    sums.loss += losses[i];
    sums.correct += hits[i];
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddLoss(const PassContext& context, const Tensor& logits,
                     const Tensor& targets, int64_t first_id,
                     LogitsGradient gradient, LossSums& sums) {
  return AddUp(
      context, logits.rows(),
      [&](const Tensor& loss, const Tensor& correct) {
        return context.regions.CrossEntropy(context, logits, targets, first_id,
                                            gradient, loss, correct);
      },
      sums);
}

absl::Status AddWholeLoss(const PassContext& context, const Tensor& logits,
                          const Tensor& targets, LogitsGradient gradient,
                          LossSums& sums) {
  return AddUp(
      context, logits.rows(),
      [&](const Tensor& loss, const Tensor& correct) {
        return ops::CrossEntropy(context.stream, logits, targets,
                                 context.scalars, gradient, loss, correct);
      },
      sums);
}

absl::StatusOr<Tensor> AsComputeType(const PassContext& context,
                                     const Tensor& gradient,
                                     OwnedTensor& storage) {
  if (gradient.dtype() == context.dtype) return gradient;
  ASSIGN_OR_RETURN(storage,
                   context.Activation(gradient.rows(), gradient.cols()));
  RETURN_IF_ERROR(ops::Convert(context.stream, gradient, storage));
  return storage.get();
}

}  // namespace lockstep
