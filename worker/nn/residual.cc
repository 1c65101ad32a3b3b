#include "worker/nn/residual.h"

#include <utility>

#include "common/status_macros.h"

namespace lockstep {

ResidualNorm::ResidualNorm(NormKind kind, double epsilon, Parameter weight,
                           Parameter bias)
    : kind_(kind),
      epsilon_(static_cast<float>(epsilon)),
      weight_(weight),
      bias_(bias) {}

Norm ResidualNorm::ToNorm() const {
  return {kind_, epsilon_, weight_.value(), bias_.value()};
}

absl::Status ResidualNorm::Allocate(const PassContext& context, int64_t rows,
                                    int64_t cols,
                                    NormActivations& saved) const {
  ASSIGN_OR_RETURN(saved.normed, context.Activation(rows, cols));
  if (kind_ == NormKind::kLayerNorm) {
    ASSIGN_OR_RETURN(saved.mean, context.Statistics(rows));
  }
  ASSIGN_OR_RETURN(saved.rstd, context.Statistics(rows));
  return absl::OkStatus();
}

absl::Status ResidualNorm::Restore(const PassContext& context,
                                   NormActivations& saved) const {
  RETURN_IF_ERROR(
      Allocate(context, saved.input.rows(), saved.input.cols(), saved));
  return ops::NormForward(context.stream, ToNorm(), saved.input, saved.normed,
                          saved.mean, saved.rstd);
}

absl::Status ResidualNorm::Forward(const PassContext& context,
                                   Residual residual,
                                   NormActivations& saved) const {
  const int64_t rows = residual.sum.rows(), cols = residual.sum.cols();
  RETURN_IF_ERROR(Allocate(context, rows, cols, saved));
  if (residual.branch.empty()) {
    saved.input = residual.sum;
    return ops::NormForward(context.stream, ToNorm(), saved.input, saved.normed,
                            saved.mean, saved.rstd);
  }
  ASSIGN_OR_RETURN(saved.sum, context.Activation(rows, cols));
  saved.input = saved.sum;
  return ops::ResidualNormForward(
      context.stream, ToNorm(), residual.sum, residual.branch,
      context.ResidualDropoutAt(residual.site), saved.sum, saved.normed,
      saved.mean, saved.rstd);
}

absl::Status ResidualNorm::Backward(const PassContext& context,
                                    const NormActivations& saved,
                                    const Tensor& dnormed,
                                    const Tensor& dsum) const {
  return ops::NormBackward(context.stream, ToNorm(), dnormed, saved.input,
                           saved.mean, saved.rstd, dsum, dsum,
                           weight_.gradient(), bias_.gradient());
}

absl::Status ResidualNorm::BackwardFirst(const PassContext& context,
                                         const NormActivations& saved,
                                         const Tensor& dnormed,
                                         const Tensor& dsum) const {
  return ops::NormBackward(context.stream, ToNorm(), dnormed, saved.input,
                           saved.mean, saved.rstd, Tensor(), dsum,
                           weight_.gradient(), bias_.gradient());
}

absl::StatusOr<Tensor> BranchGradient(const PassContext& context, uint64_t site,
                                      const Tensor& dsum,
                                      OwnedTensor& storage) {
  if (context.dropout == 0.0f) return dsum;
  ASSIGN_OR_RETURN(storage, context.Activation(dsum.rows(), dsum.cols()));
  RETURN_IF_ERROR(ops::Dropout(context.stream, dsum,
                               context.ResidualDropoutAt(site), 0, storage));
  return storage.get();
}

}  // namespace lockstep
