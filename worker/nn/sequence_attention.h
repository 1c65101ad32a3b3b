// SequenceAttention: attention of a rank's rows over whole sequences, of which
// context parallelism gives each rank some rows. The model calls it with its
// own rows; it is all that the model knows of the others'. Threads: the one
// that computes. All ranks call the same in the same order.
#ifndef LOCKSTEP_WORKER_NN_SEQUENCE_ATTENTION_H_
#define LOCKSTEP_WORKER_NN_SEQUENCE_ATTENTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/ops/attention.h"
#include "kernels/owned_tensor.h"

namespace lockstep {

struct PassContext;

// What a layer's attention is, apart from its rows.
struct AttentionHeads {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_width = 0;
  // Number of the first of these heads among all of the layer's.
  int64_t first_head = 0;
  // Of attention weights.
  uint64_t dropout_site = 0;
};

// Columns of a (N, (H + 2 KV) D) matrix.
struct QkvColumns {
  Tensor q;
  Tensor k;
  Tensor v;
};
QkvColumns Split(const Tensor& qkv, const AttentionHeads& heads);

// Causal attention as `heads` has it; bounds and rows are left to the caller.
AttentionShape ShapeOf(const PassContext& context, const AttentionHeads& heads);

class SequenceAttention {
 public:
  virtual ~SequenceAttention() = default;
  // Writes out, (n, H D), from qkv, (n, (H + 2 KV) D), and returns what
  // backward takes of the softmax: log-sum-exps.
  virtual absl::StatusOr<OwnedTensor> Forward(const PassContext& context,
                                              const AttentionHeads& heads,
                                              const Tensor& qkv,
                                              const Tensor& out) = 0;
  // Writes dqkv.
  virtual absl::Status Backward(const PassContext& context,
                                const AttentionHeads& heads, const Tensor& dout,
                                const Tensor& qkv, const Tensor& out,
                                const Tensor& lse, const Tensor& dqkv) = 0;
};

// A rank has all rows.
class LocalAttention : public SequenceAttention {
 public:
  absl::StatusOr<OwnedTensor> Forward(const PassContext& context,
                                      const AttentionHeads& heads,
                                      const Tensor& qkv,
                                      const Tensor& out) override;
  absl::Status Backward(const PassContext& context, const AttentionHeads& heads,
                        const Tensor& dout, const Tensor& qkv,
                        const Tensor& out, const Tensor& lse,
                        const Tensor& dqkv) override;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_SEQUENCE_ATTENTION_H_
