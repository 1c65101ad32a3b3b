// LayerNorm (Ba et al., arXiv:1607.06450, eq. 3) and RMSNorm (Zhang and
// Sennrich, arXiv:1910.07467, eq. 4), fused with the residual sum before them.
// All statistics and sums are fp32. Activations are fp32 or bf16, of one dtype.
#ifndef LOCKSTEP_KERNELS_OPS_NORM_H_
#define LOCKSTEP_KERNELS_OPS_NORM_H_

#include "absl/status/status.h"
#include "kernels/ops/dropout.h"
#include "kernels/ops/matmul.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace lockstep {

enum class NormKind { kLayerNorm, kRmsNorm };

struct Norm {
  NormKind kind = NormKind::kLayerNorm;
  float epsilon = 1e-5f;
  Tensor weight;  // (C,) fp32
  Tensor bias;    // (C,) fp32; empty for kRmsNorm
};

namespace ops {

// out = norm(x).
//   x, out: (N, C)   mean: (N,) fp32, empty for kRmsNorm   rstd: (N,) fp32
absl::Status NormForward(Stream& stream, const Norm& norm, const Tensor& x,
                         const Tensor& out, const Tensor& mean,
                         const Tensor& rstd);

// sum = residual + dropout(branch); out = norm(sum). `sum` may be the memory of
// `residual`.
//   residual, branch, sum, out: (N, C)
absl::Status ResidualNormForward(Stream& stream, const Norm& norm,
                                 const Tensor& residual, const Tensor& branch,
                                 const lockstep::Dropout& dropout,
                                 const Tensor& sum, const Tensor& out,
                                 const Tensor& mean, const Tensor& rstd);

// Gradient with respect to the norm's input: dx = dresidual + J^T dout, where
// `dresidual` (the gradient that reaches the same tensor past the norm) may be
// empty and may be the memory of `dx`. The gradients of weight and bias are
// added to dweight and dbias (dbias empty for kRmsNorm).
//   dout, x, dx: (N, C)   dweight, dbias: (C,) fp32
absl::Status NormBackward(Stream& stream, const Norm& norm, const Tensor& dout,
                          const Tensor& x, const Tensor& mean,
                          const Tensor& rstd, const Tensor& dresidual,
                          const Tensor& dx, const Tensor& dweight,
                          const Tensor& dbias);

}  // namespace ops
}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_OPS_NORM_H_
