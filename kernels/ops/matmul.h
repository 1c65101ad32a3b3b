// Matrix products through the vendor library (oneDNN, cuBLASLt).
#ifndef LOCKSTEP_KERNELS_OPS_MATMUL_H_
#define LOCKSTEP_KERNELS_OPS_MATMUL_H_

#include "absl/status/status.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace lockstep {

enum class Transpose { kNo, kYes };
// Whether a result replaces its output or is added to it.
enum class Accumulate { kNo, kYes };

namespace ops {

// out = op(a) op(b) [+ bias] [+ out].
//   op(a): (M, K)   op(b): (K, N)   out: (M, N)   bias: (N,) fp32, or empty
// Each operand is stored row-major with its own row stride; Transpose::kYes
// says that it is stored as (K, M), or (N, K). a and b have one dtype, fp32 or
// bf16; out is fp32 or that dtype. Sums are in fp32. bias and
// Accumulate::kYes exclude each other. K = 0 gives zeros (plus bias or out).
absl::Status Matmul(Stream& stream, const Tensor& a, Transpose transpose_a,
                    const Tensor& b, Transpose transpose_b, const Tensor& bias,
                    Accumulate accumulate, const Tensor& out);

// Gradient of a bias: out[j] (+)= sum over rows of dy[:, j], in row order.
//   dy: (N, C) fp32 or bf16   out: (C,) fp32
absl::Status ColumnSum(Stream& stream, const Tensor& dy, Accumulate accumulate,
                       const Tensor& out);

}  // namespace ops
}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_OPS_MATMUL_H_
