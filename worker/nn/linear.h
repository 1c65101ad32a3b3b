// Linear: y = x W^T + b, with W stored (out, in). Single-device code.
#ifndef LOCKSTEP_WORKER_NN_LINEAR_H_
#define LOCKSTEP_WORKER_NN_LINEAR_H_

#include "absl/status/status.h"
#include "worker/nn/parameter_store.h"
#include "worker/nn/pass_context.h"

namespace lockstep {

class Linear {
 public:
  // weight: (out, in)   bias: (out,), or empty
  Linear(Parameter weight, Parameter bias) : weight_(weight), bias_(bias) {}

  int64_t out_width() const { return weight_.shape()[0]; }
  int64_t in_width() const { return weight_.shape()[1]; }

  //   x: (N, in)   y: (N, out)
  absl::Status Forward(const PassContext& context, const Tensor& x,
                       const Tensor& y) const;
  // This rank's part of a sum over the ranks that each have some columns of the
  // weight: one of them adds the bias.
  absl::Status ForwardPart(const PassContext& context, const Tensor& x,
                           const Tensor& y) const;
  // Writes dx.
  absl::Status BackwardInput(const PassContext& context, const Tensor& dy,
                             const Tensor& dx) const;
  // Adds to the gradients of weight and bias, or to one of them.
  absl::Status BackwardWeights(const PassContext& context, const Tensor& x,
                               const Tensor& dy) const;
  absl::Status BackwardMatrix(const PassContext& context, const Tensor& x,
                              const Tensor& dy) const;
  absl::Status BackwardBias(const PassContext& context, const Tensor& dy) const;

 private:
  absl::Status Multiply(const PassContext& context, const Tensor& x,
                        const Tensor& bias, const Tensor& y) const;

  const Parameter weight_;
  const Parameter bias_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LINEAR_H_
