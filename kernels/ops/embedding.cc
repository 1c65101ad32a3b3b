#include "kernels/ops/embedding.h"

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "kernels/backend.h"
#include "kernels/ops/check.h"

namespace lockstep::ops {
namespace {

// Bounds of `segments` segments.
void CheckBounds(const Tensor& bounds, int64_t segments, ArgumentCheck& check) {
  check.Vector("bounds", bounds, segments + 1, DType::kInt32);
}

}  // namespace

absl::Status EmbeddingForward(Stream& stream, const Tensor& token,
                              int64_t first_id, const Tensor& position,
                              const Tensor& tokens_weight,
                              const Tensor& positions_weight,
                              const lockstep::Dropout& dropout,
                              const Tensor& out) {
  const int64_t rows = out.rows();
  const int64_t cols = out.cols();
  ArgumentCheck check("embedding forward", stream);
  check.Float("out", out);
  check.Float("tokens_weight", tokens_weight);
  check.That(tokens_weight.dtype() == out.dtype() ||
                 tokens_weight.dtype() == DType::kFloat32,
             absl::StrCat("tokens_weight is ", Name(tokens_weight.dtype()),
                          " and out ", Name(out.dtype()),
                          ", want one type, or fp32 weights"));
  check.Vector("token", token, rows, DType::kInt32);
  check.Matrix("tokens_weight", tokens_weight, tokens_weight.rows(), cols,
               tokens_weight.dtype());
  if (!positions_weight.empty()) {
    check.Vector("position", position, rows, DType::kInt32);
    check.Matrix("positions_weight", positions_weight, positions_weight.rows(),
                 cols, tokens_weight.dtype());
  }
  check.Dropout(dropout, rows);
  RETURN_IF_ERROR(check.status());
  return stream.backend().embedding_forward(stream, token, first_id, position,
                                            tokens_weight, positions_weight,
                                            dropout, out);
}

absl::Status EmbeddingBackward(Stream& stream, const Tensor& dout,
                               const Tensor& token, int64_t first_id,
                               const Tensor& position,
                               const lockstep::Dropout& dropout,
                               const Tensor& dtokens,
                               const Tensor& dpositions) {
  const int64_t rows = dout.rows();
  const int64_t cols = dout.cols();
  ArgumentCheck check("embedding backward", stream);
  check.Float("dout", dout);
  check.Vector("token", token, rows, DType::kInt32);
  check.Matrix("dtokens", dtokens, dtokens.rows(), cols, DType::kFloat32);
  if (!dpositions.empty()) {
    check.Vector("position", position, rows, DType::kInt32);
    check.Matrix("dpositions", dpositions, dpositions.rows(), cols,
                 DType::kFloat32);
  }
  check.Dropout(dropout, rows);
  RETURN_IF_ERROR(check.status());
  return stream.backend().embedding_backward(
      stream, dout, token, first_id, position, dropout, dtokens, dpositions);
}

absl::Status SegmentMeanForward(Stream& stream, const Tensor& x,
                                const Tensor& bounds, const Tensor& pooled) {
  ArgumentCheck check("segment mean forward", stream);
  check.Float("x", x);
  check.Matrix("pooled", pooled, pooled.rows(), x.cols(), x.dtype());
  CheckBounds(bounds, pooled.rows(), check);
  RETURN_IF_ERROR(check.status());
  return stream.backend().segment_mean_forward(stream, x, bounds, pooled);
}

absl::Status SegmentMeanBackward(Stream& stream, const Tensor& dpooled,
                                 const Tensor& bounds, const Tensor& dx) {
  ArgumentCheck check("segment mean backward", stream);
  check.Float("dx", dx);
  check.Matrix("dpooled", dpooled, dpooled.rows(), dx.cols(), dx.dtype());
  CheckBounds(bounds, dpooled.rows(), check);
  RETURN_IF_ERROR(check.status());
  return stream.backend().segment_mean_backward(stream, dpooled, bounds, dx);
}

}  // namespace lockstep::ops
