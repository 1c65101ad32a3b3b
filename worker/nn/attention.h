// Self-attention of one block: q, k and v in one product, rotary positions
// where the family has them, attention, output product. Single-device code, of
// this rank's heads.
#ifndef LOCKSTEP_WORKER_NN_ATTENTION_H_
#define LOCKSTEP_WORKER_NN_ATTENTION_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/model_part.h"
#include "worker/nn/linear.h"
#include "worker/nn/parameter_store.h"
#include "worker/nn/pass_context.h"
#include "worker/nn/sequence_attention.h"

namespace lockstep {

struct AttentionActivations {
  OwnedTensor qkv;  // (N, (H + 2 KV) D), q and k rotated
  OwnedTensor out;  // (N, H D)
  OwnedTensor lse;  // of the softmax: see SequenceAttention
};

// What gradients of the matrices take, kept for later beside the activations.
struct AttentionGradients {
  OwnedTensor dy;    // (n, C)
  OwnedTensor dqkv;  // (N, (H + 2 KV) D)
};

class Attention {
 public:
  // `prefix`: "blocks.3.attention."; `unit`: for dropout sites.
  Attention(const ModelPart& part, const ParameterStore& store,
            const std::string& prefix, int unit);

  // In and out are this rank's rows of the residual stream.
  //   x: (n, C), kept by the caller for backward   result: (n, C)
  absl::StatusOr<OwnedTensor> Forward(const PassContext& context,
                                      const Tensor& x,
                                      AttentionActivations& saved) const;
  // Attention's result again, from saved.qkv: the same bits.
  absl::Status Restore(const PassContext& context,
                       AttentionActivations& saved) const;
  // Returns dx, (n, C); frees `saved`. With `later` the matrices' gradients are
  // left to BackwardMatrices, and `saved` stays; the caller fills later->dy.
  absl::StatusOr<OwnedTensor> Backward(const PassContext& context,
                                       const Tensor& x,
                                       AttentionActivations& saved,
                                       const Tensor& dy,
                                       AttentionGradients* later) const;
  absl::Status BackwardMatrices(const PassContext& context, const Tensor& x,
                                const AttentionActivations& saved,
                                const AttentionGradients& later) const;

 private:
  // Returns the gradient of qkv, rotated as they are.
  absl::StatusOr<OwnedTensor> BackwardOutput(
      const PassContext& context, const AttentionActivations& saved,
      const Tensor& dy, const AttentionGradients* later) const;

  int64_t query_width() const { return heads_.heads * heads_.head_width; }
  // Queries and keys.
  int64_t rotated_width() const {
    return (heads_.heads + heads_.kv_heads) * heads_.head_width;
  }

  const AttentionHeads heads_;
  // Empty: positions are embedded.
  const std::optional<double> rope_theta_;
  const Linear qkv_;
  const Linear output_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_ATTENTION_H_
