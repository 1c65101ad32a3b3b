// TransformerBlock: x + attention(norm(x)), then + feed_forward(norm(.)), with
// pre-norms as in GPT-2 and Llama. One unit. Single-device code.
#ifndef LOCKSTEP_WORKER_NN_TRANSFORMER_BLOCK_H_
#define LOCKSTEP_WORKER_NN_TRANSFORMER_BLOCK_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/model_part.h"
#include "worker/nn/attention.h"
#include "worker/nn/feed_forward.h"
#include "worker/nn/parameter_store.h"
#include "worker/nn/pass_context.h"
#include "worker/nn/residual.h"

namespace lockstep {

// What one micro-batch keeps of a block between forward and backward.
struct BlockActivations {
  NormActivations attention_norm;
  AttentionActivations attention;
  NormActivations feed_forward_norm;
  FeedForwardActivations feed_forward;
  // Between BackwardInput and BackwardMatrices.
  AttentionGradients attention_later;
  FeedForwardGradients feed_forward_later;
};

class TransformerBlock {
 public:
  // `unit`: layer + 1.
  TransformerBlock(const ModelPart& part, const ParameterStore& store,
                   int unit);

  // The result's sum lives in `saved`.
  absl::StatusOr<Residual> Forward(const PassContext& context, Residual input,
                                   BlockActivations& saved) const;
  // Frees what context.checkpoint says backward computes again (Chen et al.,
  // arXiv:1604.06174; Korthikanti et al., arXiv:2205.05198, section 5). The
  // result of Forward must have been used.
  void Discard(const PassContext& context, BlockActivations& saved) const;
  // Brings it back before Backward: the same bits.
  absl::Status Restore(const PassContext& context,
                       BlockActivations& saved) const;
  // dsum: (N, C), in: gradient of the result (sum and branch alike); out: that
  // of the input. Frees `saved`.
  absl::Status Backward(const PassContext& context, BlockActivations& saved,
                        const Tensor& dsum) const;
  // The same in two steps (Qi et al., arXiv:2401.10241, section 2.1): gradients
  // of the input and of vectors, then those of matrices. `saved` keeps what the
  // second takes, and the second frees it.
  absl::Status BackwardInput(const PassContext& context,
                             BlockActivations& saved, const Tensor& dsum) const;
  absl::Status BackwardMatrices(const PassContext& context,
                                BlockActivations& saved) const;

 private:
  enum class Matrices { kNow, kLater };
  absl::Status BackwardFeedForward(const PassContext& context,
                                   BlockActivations& saved, const Tensor& dsum,
                                   Matrices matrices) const;
  absl::Status BackwardAttention(const PassContext& context,
                                 BlockActivations& saved, const Tensor& dsum,
                                 Matrices matrices) const;
  // Attention and the norm behind it.
  absl::Status ForwardAttention(const PassContext& context,
                                BlockActivations& saved) const;

  const int unit_;
  const ResidualNorm attention_norm_;
  const Attention attention_;
  const ResidualNorm feed_forward_norm_;
  const FeedForward feed_forward_;
};

// The norm called `prefix` of a model of `spec`.
ResidualNorm MakeNorm(const ModelSpec& spec, const ParameterStore& store,
                      const std::string& prefix);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_TRANSFORMER_BLOCK_H_
