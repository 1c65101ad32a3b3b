// Softmax cross-entropy that turns logits into their gradient in place.
#ifndef LOCKSTEP_KERNELS_OPS_CROSS_ENTROPY_H_
#define LOCKSTEP_KERNELS_OPS_CROSS_ENTROPY_H_

#include "absl/status/status.h"
#include "kernels/step_scalars.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace lockstep {

enum class LogitsGradient { kNone, kInPlace };

namespace ops {

// loss[n] = -log softmax(logits[n])[target[n]], 0 where target[n] < 0
// (invalid). With kInPlace logits become (softmax - one-hot) *
// inverse_valid_tokens, 0 in invalid rows: the one place where the loss becomes
// a mean over the batch. With kNone logits are left as they are.
//   logits: (N, V) fp32 or bf16   target: (N,) int32   loss: (N,) fp32
//   correct: (N,) int32, or empty: 1 where the target has the largest logit
//     (ties: the lowest id wins), 0 elsewhere and in invalid rows
absl::Status CrossEntropy(Stream& stream, const Tensor& logits,
                          const Tensor& target, const StepScalars* scalars,
                          LogitsGradient gradient, const Tensor& loss,
                          const Tensor& correct);

// *out (one fp64 in device memory) += sum of x in index order.
//   x: (N,) fp32
absl::Status SumInto(Stream& stream, const Tensor& x, double* out);

}  // namespace ops
}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_OPS_CROSS_ENTROPY_H_
