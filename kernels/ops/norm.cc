#include "kernels/ops/norm.h"

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "kernels/backend.h"
#include "kernels/ops/check.h"

namespace lockstep::ops {
namespace {

void CheckNorm(const Norm& norm, int64_t rows, int64_t cols, const Tensor& mean,
               const Tensor& rstd, ArgumentCheck& check) {
  check.That(norm.epsilon >= 0.0f, absl::StrCat("epsilon is ", norm.epsilon,
                                                ", want it not negative"));
  check.Vector("weight", norm.weight, cols, DType::kFloat32);
  check.Vector("rstd", rstd, rows, DType::kFloat32);
  if (norm.kind == NormKind::kLayerNorm) {
    check.Vector("bias", norm.bias, cols, DType::kFloat32);
    check.Vector("mean", mean, rows, DType::kFloat32);
  } else {
    check.That(norm.bias.empty() && mean.empty(),
               "RMSNorm has neither bias nor mean");
  }
}

}  // namespace

absl::Status NormForward(Stream& stream, const Norm& norm, const Tensor& x,
                         const Tensor& out, const Tensor& mean,
                         const Tensor& rstd) {
  ArgumentCheck check("norm forward", stream);
  check.Float("x", x);
  check.Matrix("out", out, x.rows(), x.cols(), x.dtype());
  CheckNorm(norm, x.rows(), x.cols(), mean, rstd, check);
  RETURN_IF_ERROR(check.status());
  return stream.backend().norm_forward(stream, norm, x, out, mean, rstd);
}

absl::Status ResidualNormForward(Stream& stream, const Norm& norm,
                                 const Tensor& residual, const Tensor& branch,
                                 const lockstep::Dropout& dropout,
                                 const Tensor& sum, const Tensor& out,
                                 const Tensor& mean, const Tensor& rstd) {
  const int64_t rows = residual.rows();
  const int64_t cols = residual.cols();
  ArgumentCheck check("residual norm forward", stream);
  check.Float("residual", residual);
  check.Matrix("branch", branch, rows, cols, residual.dtype());
  check.Matrix("sum", sum, rows, cols, residual.dtype());
  check.Matrix("out", out, rows, cols, residual.dtype());
  check.Dropout(dropout, rows);
  CheckNorm(norm, rows, cols, mean, rstd, check);
  RETURN_IF_ERROR(check.status());
  return stream.backend().residual_norm_forward(stream, norm, residual, branch,
                                                dropout, sum, out, mean, rstd);
}

absl::Status NormBackward(Stream& stream, const Norm& norm, const Tensor& dout,
                          const Tensor& x, const Tensor& mean,
                          const Tensor& rstd, const Tensor& dresidual,
                          const Tensor& dx, const Tensor& dweight,
                          const Tensor& dbias) {
  const int64_t rows = x.rows();
  const int64_t cols = x.cols();
  ArgumentCheck check("norm backward", stream);
  check.Float("x", x);
  check.Matrix("dout", dout, rows, cols, x.dtype());
  check.Matrix("dx", dx, rows, cols, x.dtype());
  if (!dresidual.empty()) {
    check.Matrix("dresidual", dresidual, rows, cols, x.dtype());
  }
  CheckNorm(norm, rows, cols, mean, rstd, check);
  check.Vector("dweight", dweight, cols, DType::kFloat32);
  if (norm.kind == NormKind::kLayerNorm) {
    check.Vector("dbias", dbias, cols, DType::kFloat32);
  } else {
    check.That(dbias.empty(), "RMSNorm has no bias");
  }
  RETURN_IF_ERROR(check.status());
  return stream.backend().norm_backward(stream, norm, dout, x, mean, rstd,
                                        dresidual, dx, dweight, dbias);
}

}  // namespace lockstep::ops
