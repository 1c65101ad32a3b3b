#include "worker/parallel/context/ulysses_attention.h"

#include <array>
#include <vector>

#include "common/model/portion.h"
#include "common/status_macros.h"
#include "kernels/ops/elementwise.h"
#include "worker/nn/pass_context.h"

namespace lockstep {
namespace {

// Heads [first, first + count) of `extent` columns wide heads from `begin` on.
struct HeadColumns {
  int64_t begin;
  int64_t count;
};

// Where a rank's heads lie among the columns of all, block by block.
std::vector<HeadColumns> BlocksOf(const AttentionHeads& all,
                                  const AttentionHeads& part, bool queries) {
  const int64_t width = all.head_width;
  const int64_t group = all.heads / all.kv_heads;
  const int64_t first_head = part.first_head - all.first_head;
  const int64_t q = all.heads * width, kv = all.kv_heads * width;
  std::vector<HeadColumns> blocks = {{first_head * width, part.heads * width}};
  if (queries) return blocks;
  const int64_t first_kv = first_head / group * width;
  blocks.push_back({q + first_kv, part.kv_heads * width});
  blocks.push_back({q + kv + first_kv, part.kv_heads * width});
  return blocks;
}

int64_t WidthOf(const std::vector<HeadColumns>& blocks) {
  int64_t width = 0;
  for (const HeadColumns& block : blocks) width += block.count;
  return width;
}

}  // namespace

AttentionHeads UlyssesAttention::HeadsOf(const AttentionHeads& heads,
                                         int rank) const {
  const Portion kv = PortionOf(heads.kv_heads, rank, group_.size());
  const int64_t group = heads.heads / heads.kv_heads;
  AttentionHeads own = heads;
  own.first_head = heads.first_head + kv.begin * group;
  own.heads = kv.size() * group;
  own.kv_heads = kv.size();
  return own;
}

absl::StatusOr<OwnedTensor> UlyssesAttention::ToHeads(
    const PassContext& context, const AttentionHeads& heads, Columns columns,
    const Tensor& rows) const {
  const int64_t n = rows.rows();
  const bool queries = columns == Columns::kQueries;
  std::vector<OwnedTensor> packed(group_.size());
  std::vector<Tensor> input, output;
  for (int rank = 0; rank < group_.size(); ++rank) {
    const std::vector<HeadColumns> blocks =
        BlocksOf(heads, HeadsOf(heads, rank), queries);
    ASSIGN_OR_RETURN(packed[rank], context.Activation(n, WidthOf(blocks)));
    int64_t column = 0;
    for (const HeadColumns& block : blocks) {
      RETURN_IF_ERROR(ops::Convert(context.stream,
                                   rows.Columns(block.begin, block.count),
                                   packed[rank]->Columns(column, block.count)));
      column += block.count;
    }
    input.push_back(packed[rank]->WithPadding());
  }
  ASSIGN_OR_RETURN(
      OwnedTensor whole,
      context.Activation(n * group_.size(), packed[group_.rank()]->cols()));
  for (int rank = 0; rank < group_.size(); ++rank) {
    output.push_back(whole->Rows(rank * n, n).WithPadding());
  }
  RETURN_IF_ERROR(group_.AllToAll(input, output)->Wait());
  return whole;
}

absl::Status UlyssesAttention::ToRows(const PassContext& context,
                                      const AttentionHeads& heads,
                                      Columns columns, const Tensor& whole,
                                      const Tensor& rows) const {
  const int64_t n = rows.rows();
  const bool queries = columns == Columns::kQueries;
  std::vector<OwnedTensor> packed(group_.size());
  std::vector<Tensor> input, output;
  for (int rank = 0; rank < group_.size(); ++rank) {
    ASSIGN_OR_RETURN(
        packed[rank],
        context.Activation(
            n, WidthOf(BlocksOf(heads, HeadsOf(heads, rank), queries))));
    input.push_back(whole.Rows(rank * n, n).WithPadding());
    output.push_back(packed[rank]->WithPadding());
  }
  RETURN_IF_ERROR(group_.AllToAll(input, output)->Wait());
  for (int rank = 0; rank < group_.size(); ++rank) {
    int64_t column = 0;
    for (const HeadColumns& block :
         BlocksOf(heads, HeadsOf(heads, rank), queries)) {
      RETURN_IF_ERROR(ops::Convert(context.stream,
                                   packed[rank]->Columns(column, block.count),
                                   rows.Columns(block.begin, block.count)));
      column += block.count;
    }
  }
  return absl::OkStatus();
}

AttentionShape UlyssesAttention::WholeShape(const PassContext& context,
                                            const AttentionHeads& own) const {
  AttentionShape shape = ShapeOf(context, own);
  shape.query_bounds = context.batch.segment_bounds;
  shape.key_bounds = context.batch.segment_bounds;
  shape.max_query_rows = context.batch.max_segment_rows;
  shape.max_key_rows = context.batch.max_segment_rows;
  shape.dropout.rows = context.batch.whole_origin;
  return shape;
}

absl::StatusOr<OwnedTensor> UlyssesAttention::Forward(
    const PassContext& context, const AttentionHeads& heads, const Tensor& qkv,
    const Tensor& out) {
  const AttentionHeads own = HeadsOf(heads, group_.rank());
  ASSIGN_OR_RETURN(const OwnedTensor whole,
                   ToHeads(context, heads, Columns::kAll, qkv));
  ASSIGN_OR_RETURN(
      const OwnedTensor result,
      context.Activation(whole->rows(), own.heads * own.head_width));
  ASSIGN_OR_RETURN(
      OwnedTensor lse,
      AllocateTensor(context.stream, DType::kFloat32,
                     {own.heads, whole->rows()}, MemoryCategory::kActivation,
                     RowPadding::kDense));
  const QkvColumns columns = Split(whole, own);
  RETURN_IF_ERROR(ops::AttentionForward(context.stream,
                                        WholeShape(context, own), columns.q,
                                        columns.k, columns.v, result, lse));
  RETURN_IF_ERROR(ToRows(context, heads, Columns::kQueries, result, out));
  return lse;
}

absl::Status UlyssesAttention::Backward(const PassContext& context,
                                        const AttentionHeads& heads,
                                        const Tensor& dout, const Tensor& qkv,
                                        const Tensor& out, const Tensor& lse,
                                        const Tensor& dqkv) {
  const AttentionHeads own = HeadsOf(heads, group_.rank());
  ASSIGN_OR_RETURN(const OwnedTensor whole,
                   ToHeads(context, heads, Columns::kAll, qkv));
  ASSIGN_OR_RETURN(const OwnedTensor whole_out,
                   ToHeads(context, heads, Columns::kQueries, out));
  ASSIGN_OR_RETURN(const OwnedTensor whole_dout,
                   ToHeads(context, heads, Columns::kQueries, dout));
  ASSIGN_OR_RETURN(const OwnedTensor gradients,
                   context.Activation(whole->rows(), whole->cols()));
  const QkvColumns columns = Split(whole, own);
  const QkvColumns dcolumns = Split(gradients, own);
  RETURN_IF_ERROR(ops::AttentionBackward(
      context.stream, WholeShape(context, own), whole_dout, columns.q,
      columns.k, columns.v, whole_out, lse, dcolumns.q, dcolumns.k,
      dcolumns.v));
  return ToRows(context, heads, Columns::kAll, gradients, dqkv);
}

}  // namespace lockstep
