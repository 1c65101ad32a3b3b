#include "kernels/ops/matmul.h"

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "kernels/backend.h"
#include "kernels/ops/check.h"

namespace lockstep::ops {

absl::Status Matmul(Stream& stream, const Tensor& a, Transpose transpose_a,
                    const Tensor& b, Transpose transpose_b, const Tensor& bias,
                    Accumulate accumulate, const Tensor& out) {
  const bool turned_a = transpose_a == Transpose::kYes;
  const bool turned_b = transpose_b == Transpose::kYes;
  const int64_t m = out.rows();
  const int64_t n = out.cols();
  const int64_t k = turned_a ? a.rows() : a.cols();
  ArgumentCheck check("matmul", stream);
  check.Float("a", a);
  check.Float("out", out);
  check.Matrix(turned_a ? "a, transposed," : "a", a, turned_a ? k : m,
               turned_a ? m : k, a.dtype());
  check.Matrix(turned_b ? "b, transposed," : "b", b, turned_b ? n : k,
               turned_b ? k : n, a.dtype());
  check.That(out.dtype() == DType::kFloat32 || out.dtype() == a.dtype(),
             absl::StrCat("out is ", Name(out.dtype()), ", want fp32 as a is ",
                          Name(a.dtype())));
  if (!bias.empty()) {
    check.Vector("bias", bias, n, DType::kFloat32);
    check.That(accumulate == Accumulate::kNo,
               "a bias and accumulation exclude each other");
  }
  RETURN_IF_ERROR(check.status());
  return stream.backend().matmul(stream, a, transpose_a, b, transpose_b, bias,
                                 accumulate, out);
}

absl::Status ColumnSum(Stream& stream, const Tensor& dy, Accumulate accumulate,
                       const Tensor& out) {
  ArgumentCheck check("column sum", stream);
  check.Float("dy", dy);
  check.Vector("out", out, dy.cols(), DType::kFloat32);
  RETURN_IF_ERROR(check.status());
  return stream.backend().column_sum(stream, dy, accumulate, out);
}

}  // namespace lockstep::ops
