#include "worker/nn/tensor_regions.h"

#include "common/status_macros.h"
#include "worker/nn/pass_context.h"

namespace lockstep {

absl::StatusOr<OwnedTensor> PendingRows::Finish() {
  if (wait_ != nullptr) {
    RETURN_IF_ERROR(std::exchange(wait_, nullptr)());
  }
  return own_.empty() ? std::move(partial_) : std::move(own_);
}

Tensor TensorRegions::Own(const Tensor& whole) const {
  const RowPart part = row_part();
  const int64_t rows = whole.rows() / part.parts;
  return whole.Rows(part.index * rows, rows);
}

absl::StatusOr<Tensor> LocalRegions::Whole(const PassContext& context,
                                           const Tensor& own,
                                           OwnedTensor& storage) {
  return own;
}

absl::StatusOr<PendingRows> LocalRegions::BeginSum(const PassContext& context,
                                                   OwnedTensor partial) {
  return PendingRows(std::move(partial), OwnedTensor(), nullptr);
}

absl::Status LocalRegions::CrossEntropy(const PassContext& context,
                                        const Tensor& logits,
                                        const Tensor& targets, int64_t first_id,
                                        LogitsGradient gradient,
                                        const Tensor& loss,
                                        const Tensor& correct) {
  return ops::CrossEntropy(context.stream, logits, targets, context.scalars,
                           gradient, loss, correct);
}

absl::StatusOr<OwnedTensor> LocalRegions::WholeLogits(
    const PassContext& context, OwnedTensor part, int64_t vocabulary) {
  return part;
}

}  // namespace lockstep
