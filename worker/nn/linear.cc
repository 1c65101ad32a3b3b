#include "worker/nn/linear.h"

#include "common/status_macros.h"
#include "kernels/ops/matmul.h"

namespace lockstep {

absl::Status Linear::Multiply(const PassContext& context, const Tensor& x,
                              const Tensor& bias, const Tensor& y) const {
  return ops::Matmul(context.stream, x, Transpose::kNo, weight_.value(),
                     Transpose::kYes, bias, Accumulate::kNo, y);
}

absl::Status Linear::Forward(const PassContext& context, const Tensor& x,
                             const Tensor& y) const {
  return Multiply(context, x, bias_.value(), y);
}

absl::Status Linear::ForwardPart(const PassContext& context, const Tensor& x,
                                 const Tensor& y) const {
  return Multiply(context, x,
                  context.regions.adds_bias() ? bias_.value() : Tensor(), y);
}

absl::Status Linear::BackwardInput(const PassContext& context, const Tensor& dy,
                                   const Tensor& dx) const {
  return ops::Matmul(context.stream, dy, Transpose::kNo, weight_.value(),
                     Transpose::kNo, Tensor(), Accumulate::kNo, dx);
}

absl::Status Linear::BackwardWeights(const PassContext& context,
                                     const Tensor& x, const Tensor& dy) const {
  RETURN_IF_ERROR(BackwardMatrix(context, x, dy));
  return BackwardBias(context, dy);
}

absl::Status Linear::BackwardMatrix(const PassContext& context, const Tensor& x,
                                    const Tensor& dy) const {
  return ops::Matmul(context.stream, dy, Transpose::kYes, x, Transpose::kNo,
                     Tensor(), Accumulate::kYes, weight_.gradient());
}

absl::Status Linear::BackwardBias(const PassContext& context,
                                  const Tensor& dy) const {
  if (bias_.empty()) return absl::OkStatus();
  return ops::ColumnSum(context.stream, dy, Accumulate::kYes, bias_.gradient());
}

}  // namespace lockstep
