#include "worker/parallel/context/ring_attention.h"

#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "kernels/ops/elementwise.h"
#include "worker/nn/pass_context.h"

namespace lockstep {
namespace {

// Rows of one of a rank's two chunks.
Tensor Half(const Tensor& rows, int64_t half) {
  const int64_t count = rows.rows() / 2;
  return rows.Rows(half * count, count);
}

// The same of log-sum-exps, (H, n).
Tensor HalfOfLse(const Tensor& lse, int64_t half) {
  const int64_t count = lse.cols() / 2;
  return lse.Columns(half * count, count);
}

// Waits on every way out: the tensors of a transfer may go then.
class Transfer {
 public:
  explicit Transfer(std::unique_ptr<Work> work) : work_(std::move(work)) {}
  Transfer(Transfer&&) = default;
  Transfer& operator=(Transfer&&) = delete;
  ~Transfer() {
    if (work_ != nullptr) work_->Wait().IgnoreError();
  }
  absl::Status Wait() { return std::exchange(work_, nullptr)->Wait(); }

 private:
  std::unique_ptr<Work> work_;
};

}  // namespace

std::vector<RingAttention::Pair> RingAttention::PairsWith(int owner) const {
  std::vector<Pair> pairs;
  for (int query = 0; query < 2; ++query) {
    for (int key = 0; key < 2; ++key) {
      const Pair pair = {ChunkOf(group_.rank(), query), ChunkOf(owner, key),
                         query, key};
      // Keys of later chunks are hidden by the causal mask.
      if (pair.key_chunk <= pair.query_chunk) pairs.push_back(pair);
    }
  }
  return pairs;
}

AttentionShape RingAttention::PairShape(const PassContext& context,
                                        const AttentionHeads& heads,
                                        const Pair& pair) const {
  const ChunkSegments& queries = context.batch.chunks[pair.query_chunk];
  const ChunkSegments& keys = context.batch.chunks[pair.key_chunk];
  AttentionShape shape = ShapeOf(context, heads);
  shape.query_bounds = queries.bounds;
  shape.query_offsets = queries.offsets;
  shape.max_query_rows = queries.max_rows;
  shape.key_bounds = keys.bounds;
  shape.key_offsets = keys.offsets;
  shape.max_key_rows = keys.max_rows;
  const int64_t rows = context.batch.rows / 2;
  const RowOrigin& origin = context.batch.origin;
  shape.dropout.rows = {origin.sample.Slice(pair.query_half * rows, rows),
                        origin.position.Slice(pair.query_half * rows, rows)};
  return shape;
}

std::unique_ptr<Work> RingAttention::Rotate(const Tensor& from,
                                            const Tensor& to) const {
  using Direction = PeerTransfer::Direction;
  const int size = group_.size();
  const PeerTransfer transfers[] = {
      {Direction::kSend, (group_.rank() + 1) % size, from.WithPadding()},
      {Direction::kReceive, (group_.rank() + size - 1) % size,
       to.WithPadding()}};
  return group_.Exchange(transfers);
}

absl::StatusOr<OwnedTensor> RingAttention::KeysAndValues(
    const PassContext& context, const AttentionHeads& heads,
    const Tensor& qkv) const {
  const int64_t q = heads.heads * heads.head_width;
  const int64_t width = 2 * heads.kv_heads * heads.head_width;
  ASSIGN_OR_RETURN(OwnedTensor copy, context.Activation(qkv.rows(), width));
  RETURN_IF_ERROR(ops::Convert(context.stream, qkv.Columns(q, width), copy));
  return copy;
}

absl::StatusOr<OwnedTensor> RingAttention::Forward(const PassContext& context,
                                                   const AttentionHeads& heads,
                                                   const Tensor& qkv,
                                                   const Tensor& out) {
  const int64_t n = qkv.rows();
  const int64_t kv = heads.kv_heads * heads.head_width;
  const Tensor queries = Split(qkv, heads).q;
  const auto allocate_lse = [&](int64_t rows) {
    return AllocateTensor(context.stream, DType::kFloat32, {heads.heads, rows},
                          MemoryCategory::kActivation, RowPadding::kDense);
  };
  ASSIGN_OR_RETURN(OwnedTensor lse, allocate_lse(n));
  ASSIGN_OR_RETURN(const OwnedTensor part_lse, allocate_lse(n / 2));
  ASSIGN_OR_RETURN(const OwnedTensor part_out,
                   context.Activation(n / 2, out.cols()));
  ASSIGN_OR_RETURN(OwnedTensor here, KeysAndValues(context, heads, qkv));
  ASSIGN_OR_RETURN(OwnedTensor next, context.Activation(n, here->cols()));
  bool begun[2] = {false, false};
  for (int step = 0; step < group_.size(); ++step) {
    const bool last = step + 1 == group_.size();
    std::optional<Transfer> transfer;
    if (!last) transfer.emplace(Rotate(here, next));
    for (const Pair& pair : PairsWith(OwnerAt(step))) {
      const Tensor keys = Half(here, pair.key_half);
      const Tensor own_out = Half(out, pair.query_half);
      const Tensor own_lse = HalfOfLse(lse, pair.query_half);
      const bool first = !std::exchange(begun[pair.query_half], true);
      RETURN_IF_ERROR(ops::AttentionForward(
          context.stream, PairShape(context, heads, pair),
          Half(queries, pair.query_half), keys.Columns(0, kv),
          keys.Columns(kv, kv), first ? own_out : part_out.get(),
          first ? own_lse : part_lse.get()));
      if (!first) {
        RETURN_IF_ERROR(ops::AttentionMerge(
            context.stream, heads.heads, part_out, part_lse, own_out, own_lse));
      }
    }
    if (last) break;
    RETURN_IF_ERROR(transfer->Wait());
    std::swap(here, next);
  }
  return lse;
}

absl::Status RingAttention::Backward(const PassContext& context,
                                     const AttentionHeads& heads,
                                     const Tensor& dout, const Tensor& qkv,
                                     const Tensor& out, const Tensor& lse,
                                     const Tensor& dqkv) {
  const int64_t n = qkv.rows();
  const int64_t q = heads.heads * heads.head_width;
  const int64_t kv = heads.kv_heads * heads.head_width;
  const Tensor queries = Split(qkv, heads).q;
  const Tensor dqueries = dqkv.Columns(0, q);
  ASSIGN_OR_RETURN(OwnedTensor here, KeysAndValues(context, heads, qkv));
  ASSIGN_OR_RETURN(OwnedTensor next, context.Activation(n, 2 * kv));
  // Gradients travel with what they are of, adding up on the way.
  ASSIGN_OR_RETURN(OwnedTensor dhere, context.Activation(n, 2 * kv));
  ASSIGN_OR_RETURN(OwnedTensor dnext, context.Activation(n, 2 * kv));
  ASSIGN_OR_RETURN(const OwnedTensor part_dq, context.Activation(n / 2, q));
  ASSIGN_OR_RETURN(const OwnedTensor part_dkv,
                   context.Activation(n / 2, 2 * kv));
  RETURN_IF_ERROR(ops::Zero(context.stream, dqueries));
  RETURN_IF_ERROR(ops::Zero(context.stream, dhere));
  for (int step = 0; step < group_.size(); ++step) {
    const bool last = step + 1 == group_.size();
    std::optional<Transfer> transfer;
    if (!last) transfer.emplace(Rotate(here, next));
    for (const Pair& pair : PairsWith(OwnerAt(step))) {
      const Tensor keys = Half(here, pair.key_half);
      RETURN_IF_ERROR(ops::AttentionBackward(
          context.stream, PairShape(context, heads, pair),
          Half(dout, pair.query_half), Half(queries, pair.query_half),
          keys.Columns(0, kv), keys.Columns(kv, kv), Half(out, pair.query_half),
          HalfOfLse(lse, pair.query_half), part_dq, part_dkv->Columns(0, kv),
          part_dkv->Columns(kv, kv)));
      const Tensor dq = Half(dqueries, pair.query_half);
      const Tensor dkeys = Half(dhere, pair.key_half);
      RETURN_IF_ERROR(ops::Add(context.stream, dq, part_dq, dq));
      RETURN_IF_ERROR(ops::Add(context.stream, dkeys, part_dkv, dkeys));
    }
    if (!last) {
      RETURN_IF_ERROR(transfer->Wait());
      transfer.reset();
      std::swap(here, next);
    }
    // After the last step they are the next rank's own.
    Transfer gradients(Rotate(dhere, dnext));
    RETURN_IF_ERROR(gradients.Wait());
    std::swap(dhere, dnext);
  }
  return ops::Convert(context.stream, dhere, dqkv.Columns(q, 2 * kv));
}

}  // namespace lockstep
