#include "worker/nn/sequence_attention.h"

#include <cmath>

#include "common/status_macros.h"
#include "worker/nn/pass_context.h"

namespace lockstep {
namespace {

// Of whole sequences, all of which are here.
AttentionShape LocalShape(const PassContext& context,
                          const AttentionHeads& heads) {
  AttentionShape shape = ShapeOf(context, heads);
  shape.query_bounds = context.batch.segment_bounds;
  shape.key_bounds = context.batch.segment_bounds;
  shape.max_query_rows = context.batch.max_segment_rows;
  shape.max_key_rows = context.batch.max_segment_rows;
  return shape;
}

}  // namespace

QkvColumns Split(const Tensor& qkv, const AttentionHeads& heads) {
  const int64_t q = heads.heads * heads.head_width;
  const int64_t kv = heads.kv_heads * heads.head_width;
  return {qkv.Columns(0, q), qkv.Columns(q, kv), qkv.Columns(q + kv, kv)};
}

AttentionShape ShapeOf(const PassContext& context,
                       const AttentionHeads& heads) {
  AttentionShape shape;
  shape.heads = heads.heads;
  shape.kv_heads = heads.kv_heads;
  shape.head_width = heads.head_width;
  shape.first_head = heads.first_head;
  shape.softmax_scale = static_cast<float>(
      1.0 / std::sqrt(static_cast<double>(heads.head_width)));
  shape.mask = AttentionMask::kCausal;
  shape.dropout = context.DropoutAt(heads.dropout_site);
  return shape;
}

absl::StatusOr<OwnedTensor> LocalAttention::Forward(const PassContext& context,
                                                    const AttentionHeads& heads,
                                                    const Tensor& qkv,
                                                    const Tensor& out) {
  ASSIGN_OR_RETURN(
      OwnedTensor lse,
      AllocateTensor(context.stream, DType::kFloat32, {heads.heads, qkv.rows()},
                     MemoryCategory::kActivation, RowPadding::kDense));
  const QkvColumns columns = Split(qkv, heads);
  RETURN_IF_ERROR(ops::AttentionForward(context.stream,
                                        LocalShape(context, heads), columns.q,
                                        columns.k, columns.v, out, lse));
  return lse;
}

absl::Status LocalAttention::Backward(const PassContext& context,
                                      const AttentionHeads& heads,
                                      const Tensor& dout, const Tensor& qkv,
                                      const Tensor& out, const Tensor& lse,
                                      const Tensor& dqkv) {
  const QkvColumns columns = Split(qkv, heads);
  const QkvColumns gradients = Split(dqkv, heads);
  return ops::AttentionBackward(context.stream, LocalShape(context, heads),
                                dout, columns.q, columns.k, columns.v, out, lse,
                                gradients.q, gradients.k, gradients.v);
}

}  // namespace lockstep
