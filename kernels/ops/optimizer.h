// Optimizer updates in one pass over memory. All tensors are dense and 1-dim.
// Every update multiplies gradients by scalars->clip_factor, reads
// scalars->learning_rate, does nothing where scalars->finite is 0, and writes
// the bf16 copy of the parameters where one is given (`compute`, may be empty).
// Weight decay is `weight_decay` of the call: callers split at its boundaries.
#ifndef LOCKSTEP_KERNELS_OPS_OPTIMIZER_H_
#define LOCKSTEP_KERNELS_OPS_OPTIMIZER_H_

#include "absl/status/status.h"
#include "kernels/step_scalars.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace lockstep::ops {

// AdamW (Loshchilov and Hutter, arXiv:1711.05101, algorithm 2; PyTorch's order:
// p -= lr * wd * p, then p -= lr * m^ / (sqrt(v^) + epsilon)).
struct AdamWConstants {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;
};
//   parameter, gradient, first_moment, second_moment: (n,) fp32
//   compute: (n,) bf16, or empty
absl::Status AdamW(Stream& stream, const AdamWConstants& constants,
                   const StepScalars* scalars, const Tensor& parameter,
                   const Tensor& gradient, const Tensor& first_moment,
                   const Tensor& second_moment, const Tensor& compute);

// SGD with momentum (PyTorch: g += wd * p; b = mu * b + g; p -= lr * b).
struct SgdConstants {
  float momentum = 0.9f;
  float weight_decay = 0.0f;
};
absl::Status Sgd(Stream& stream, const SgdConstants& constants,
                 const StepScalars* scalars, const Tensor& parameter,
                 const Tensor& gradient, const Tensor& momentum,
                 const Tensor& compute);

// LARS (You et al., arXiv:1708.03888, algorithm 1): b = mu * b + lr * ratio *
// (g + wd * p); p -= b, with ratio = trust * |p| / (|g| + wd * |p|), 1 where
// either norm is 0 or the tensor is excluded. `ratio` is in device memory.
struct LarsConstants {
  float momentum = 0.9f;
  float weight_decay = 0.0f;
};
absl::Status Lars(Stream& stream, const LarsConstants& constants,
                  const StepScalars* scalars, const float* ratio,
                  const Tensor& parameter, const Tensor& gradient,
                  const Tensor& momentum, const Tensor& compute);

// LAMB (You et al., arXiv:1904.00962, algorithm 2). LambMoments updates the
// moments and writes the update u = m^ / (sqrt(v^) + epsilon) + wd * p over the
// gradient; LambApply does p -= lr * ratio * u with ratio = |p| / |u| (1 where
// either is 0 or the tensor is excluded).
absl::Status LambMoments(Stream& stream, const AdamWConstants& constants,
                         const StepScalars* scalars, const Tensor& parameter,
                         const Tensor& gradient, const Tensor& first_moment,
                         const Tensor& second_moment);
absl::Status LambApply(Stream& stream, const StepScalars* scalars,
                       const float* ratio, const Tensor& parameter,
                       const Tensor& update, const Tensor& compute);

// *out (one fp64 in device memory) += sum of x^2, in a fixed order that depends
// on x's length only, in fp64 over fp32 partial sums of fixed blocks.
//   x: (n,) fp32
absl::Status SumOfSquares(Stream& stream, const Tensor& x, double* out);

}  // namespace lockstep::ops

#endif  // LOCKSTEP_KERNELS_OPS_OPTIMIZER_H_
