// Attention over packed sequences without the full score matrix
// (FlashAttention-2: Dao, arXiv:2307.08691, algorithms 1 and 2).
#ifndef LOCKSTEP_KERNELS_OPS_ATTENTION_H_
#define LOCKSTEP_KERNELS_OPS_ATTENTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/ops/dropout.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace lockstep {

enum class AttentionMask { kCausal, kBidirectional };

// What attends to what. Rows are packed: segment s owns query rows
// [query_bounds[s], query_bounds[s + 1]) and key rows likewise; attention stays
// within a segment. Segments may be empty.
struct AttentionShape {
  int64_t heads = 0;       // H
  int64_t kv_heads = 0;    // KV; query head h reads key head h / (H / KV)
  int64_t head_width = 0;  // D
  float softmax_scale = 0.0f;
  AttentionMask mask = AttentionMask::kCausal;
  // A query sees this many keys up to its own, itself included; 0 is all.
  int64_t window = 0;
  // (segments,) int32 in device memory, or empty for 0: added to a row's index
  // within its segment before the causal comparison. They are where the rows
  // begin in their segment when each side has a part of it.
  Tensor query_offsets;
  Tensor key_offsets;
  // (segments + 1,) int32 in device memory, rising. key_bounds may be the same.
  Tensor query_bounds;
  Tensor key_bounds;
  // Longest segment, for launch shapes.
  int64_t max_query_rows = 0;
  int64_t max_key_rows = 0;
  // Drops attention weights; element = key position in its sample * 1 with
  // key SiteKey folded with the head: word of (key + first_head + head).
  Dropout dropout;
  // Number of the first of these heads among all of the layer's.
  int64_t first_head = 0;
};

namespace ops {

// out = softmax(scale * q k^T + mask) v per head; lse = its log-sum-exp
// (-infinity where a query sees no key; out is then 0).
//   q, out: (N, H D)   k, v: (M, KV D)   lse: (H, N) fp32
// q, k and v may be column ranges of one matrix. fp32 or bf16; sums in fp32.
absl::Status AttentionForward(Stream& stream, const AttentionShape& shape,
                              const Tensor& q, const Tensor& k, const Tensor& v,
                              const Tensor& out, const Tensor& lse);

// Writes dq, dk and dv (they may be column ranges of one matrix, but must not
// overlap q, k, v).
absl::Status AttentionBackward(Stream& stream, const AttentionShape& shape,
                               const Tensor& dout, const Tensor& q,
                               const Tensor& k, const Tensor& v,
                               const Tensor& out, const Tensor& lse,
                               const Tensor& dq, const Tensor& dk,
                               const Tensor& dv);

// Two attentions of the same queries over different keys as one over all of
// them (Liu et al., arXiv:2310.01889, section 3; the blockwise softmax of
// arXiv:2307.08691, section 3.1): out and lse become those of both.
//   out, part_out: (N, H D)   lse, part_lse: (H, N) fp32
absl::Status AttentionMerge(Stream& stream, int64_t heads,
                            const Tensor& part_out, const Tensor& part_lse,
                            const Tensor& out, const Tensor& lse);

}  // namespace ops
}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_OPS_ATTENTION_H_
