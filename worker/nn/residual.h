// The residual stream between units: sum + dropout(branch). The addition is
// left to the next norm, which does it in the same pass over memory.
#ifndef LOCKSTEP_WORKER_NN_RESIDUAL_H_
#define LOCKSTEP_WORKER_NN_RESIDUAL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/ops/norm.h"
#include "kernels/owned_tensor.h"
#include "worker/nn/parameter_store.h"
#include "worker/nn/pass_context.h"

namespace lockstep {

struct Residual {
  // (N, C); owned by the activations of the unit that made it.
  Tensor sum;
  // (N, C), or empty.
  OwnedTensor branch;
  // Dropout site of `branch`.
  uint64_t site = 0;
};

// A norm that takes in the branch, and what its backward needs.
struct NormActivations {
  OwnedTensor sum;     // (N, C) residual + branch; empty: the input was used
  Tensor input;        // (N, C) what was normalised
  OwnedTensor normed;  // (N, C)
  OwnedTensor mean;    // (N,) fp32, LayerNorm only
  OwnedTensor rstd;    // (N,) fp32
};

class ResidualNorm {
 public:
  // bias: empty for RMSNorm.
  ResidualNorm(NormKind kind, double epsilon, Parameter weight, Parameter bias);

  // Consumes `residual`; its branch is freed.
  absl::Status Forward(const PassContext& context, Residual residual,
                       NormActivations& saved) const;
  // Normalises saved.input again: the same bits.
  absl::Status Restore(const PassContext& context,
                       NormActivations& saved) const;
  // dsum: gradient with respect to the sum, (N, C); on entry that of the path
  // past the norm, to which the norm's own is added. Adds to the parameters'
  // gradients.
  absl::Status Backward(const PassContext& context,
                        const NormActivations& saved, const Tensor& dnormed,
                        const Tensor& dsum) const;
  // The same where nothing goes past the norm: writes dsum.
  absl::Status BackwardFirst(const PassContext& context,
                             const NormActivations& saved,
                             const Tensor& dnormed, const Tensor& dsum) const;

 private:
  absl::Status Allocate(const PassContext& context, int64_t rows, int64_t cols,
                        NormActivations& saved) const;
  // As it is now: see Parameter.
  Norm ToNorm() const;

  const NormKind kind_;
  const float epsilon_;
  const Parameter weight_;
  const Parameter bias_;
};

// Gradient of the branch: dropout's bits on `dsum`. Without dropout it is
// `dsum` itself and `storage` stays empty.
absl::StatusOr<Tensor> BranchGradient(const PassContext& context, uint64_t site,
                                      const Tensor& dsum, OwnedTensor& storage);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_RESIDUAL_H_
