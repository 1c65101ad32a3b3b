#include "kernels/ops/attention.h"

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "kernels/backend.h"
#include "kernels/ops/check.h"

namespace lockstep::ops {
namespace {

// Shapes of one side's tensors beside q, k and v themselves.
void CheckShape(const AttentionShape& shape, const Tensor& q, const Tensor& k,
                const Tensor& v, const Tensor& out, const Tensor& lse,
                ArgumentCheck& check) {
  check.That(shape.heads > 0 && shape.kv_heads > 0 && shape.head_width > 0,
             absl::StrCat(shape.heads, " heads, ", shape.kv_heads,
                          " key heads of width ", shape.head_width,
                          ", want positive numbers"));
  check.That(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0,
             absl::StrCat(shape.heads, " heads can't share ", shape.kv_heads,
                          " key heads evenly"));
  check.That(shape.window >= 0, absl::StrCat("window is ", shape.window,
                                             ", want it not negative"));
  const int64_t width = shape.heads * shape.head_width;
  const int64_t kv_width = shape.kv_heads * shape.head_width;
  check.Float("q", q);
  check.Matrix("q", q, q.rows(), width, q.dtype());
  check.Matrix("k", k, k.rows(), kv_width, q.dtype());
  check.Matrix("v", v, k.rows(), kv_width, q.dtype());
  check.Matrix("out", out, q.rows(), width, q.dtype());
  check.Matrix("lse", lse, shape.heads, q.rows(), DType::kFloat32);
  const int64_t segments = shape.query_bounds.elements() - 1;
  check.That(segments >= 0, "query_bounds is empty");
  check.Vector("query_bounds", shape.query_bounds, segments + 1, DType::kInt32);
  check.Vector("key_bounds", shape.key_bounds, segments + 1, DType::kInt32);
  for (const Tensor* offsets : {&shape.query_offsets, &shape.key_offsets}) {
    if (offsets->empty()) continue;
    check.Vector("offsets", *offsets, segments, DType::kInt32);
  }
  check.Dropout(shape.dropout, q.rows());
}

}  // namespace

absl::Status AttentionForward(Stream& stream, const AttentionShape& shape,
                              const Tensor& q, const Tensor& k, const Tensor& v,
                              const Tensor& out, const Tensor& lse) {
  ArgumentCheck check("attention forward", stream);
  CheckShape(shape, q, k, v, out, lse, check);
  RETURN_IF_ERROR(check.status());
  return stream.backend().attention_forward(stream, shape, q, k, v, out, lse);
}

absl::Status AttentionBackward(Stream& stream, const AttentionShape& shape,
                               const Tensor& dout, const Tensor& q,
                               const Tensor& k, const Tensor& v,
                               const Tensor& out, const Tensor& lse,
                               const Tensor& dq, const Tensor& dk,
                               const Tensor& dv) {
  ArgumentCheck check("attention backward", stream);
  CheckShape(shape, q, k, v, out, lse, check);
  check.Matrix("dout", dout, q.rows(), q.cols(), q.dtype());
  check.Matrix("dq", dq, q.rows(), q.cols(), q.dtype());
  check.Matrix("dk", dk, k.rows(), k.cols(), q.dtype());
  check.Matrix("dv", dv, k.rows(), k.cols(), q.dtype());
  RETURN_IF_ERROR(check.status());
  return stream.backend().attention_backward(stream, shape, dout, q, k, v, out,
                                             lse, dq, dk, dv);
}

absl::Status AttentionMerge(Stream& stream, int64_t heads,
                            const Tensor& part_out, const Tensor& part_lse,
                            const Tensor& out, const Tensor& lse) {
  ArgumentCheck check("attention merge", stream);
  check.Float("out", out);
  check.Matrix("part_out", part_out, out.rows(), out.cols(), out.dtype());
  check.That(heads > 0 && out.cols() % heads == 0,
             absl::StrCat("out has ", out.cols(), " columns, want whole heads",
                          " of ", heads));
  check.Matrix("lse", lse, heads, out.rows(), DType::kFloat32);
  check.Matrix("part_lse", part_lse, heads, out.rows(), DType::kFloat32);
  RETURN_IF_ERROR(check.status());
  return stream.backend().attention_merge(stream, heads, part_out, part_lse,
                                          out, lse);
}

}  // namespace lockstep::ops
