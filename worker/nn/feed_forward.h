// Feed-forward part of one block: up, GELU, down (gpt2), or gate and up in one
// product, SwiGLU, down (llama). Single-device code, of this rank's part of the
// width.
#ifndef LOCKSTEP_WORKER_NN_FEED_FORWARD_H_
#define LOCKSTEP_WORKER_NN_FEED_FORWARD_H_

#include <string>

#include "absl/status/status.h"
#include "common/model/model_part.h"
#include "worker/nn/linear.h"
#include "worker/nn/parameter_store.h"
#include "worker/nn/pass_context.h"

namespace lockstep {

struct FeedForwardActivations {
  OwnedTensor hidden;     // (N, F) before GELU, or (N, 2F) gate and up
  OwnedTensor activated;  // (N, F)
};

// What gradients of the matrices take, kept for later beside the activations.
struct FeedForwardGradients {
  OwnedTensor dy;          // (n, C)
  OwnedTensor dactivated;  // (N, F), or before GELU
  // (N, F) or (N, 2F): of the first product's result, in memory of either.
  Tensor dhidden;
};

class FeedForward {
 public:
  // `prefix`: "blocks.3.feed_forward.".
  FeedForward(const ModelPart& part, const ParameterStore& store,
              const std::string& prefix);

  // In and out are this rank's rows of the residual stream.
  //   x: (n, C), kept by the caller for backward   result: (n, C)
  absl::StatusOr<OwnedTensor> Forward(const PassContext& context,
                                      const Tensor& x,
                                      FeedForwardActivations& saved) const;
  // What Forward keeps, without its result.
  absl::Status Restore(const PassContext& context, const Tensor& x,
                       FeedForwardActivations& saved) const;
  // Returns dx, (n, C); frees `saved`. With `later` the matrices' gradients are
  // left to BackwardMatrices, and `saved` stays; the caller fills later->dy.
  absl::StatusOr<OwnedTensor> Backward(const PassContext& context,
                                       const Tensor& x,
                                       FeedForwardActivations& saved,
                                       const Tensor& dy,
                                       FeedForwardGradients* later) const;
  absl::Status BackwardMatrices(const PassContext& context, const Tensor& x,
                                const FeedForwardActivations& saved,
                                const FeedForwardGradients& later) const;

 private:
  enum class Kind { kGelu, kSwiglu };
  const Kind kind_;
  const Linear in_;
  const Linear down_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_FEED_FORWARD_H_
