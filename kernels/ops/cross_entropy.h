// Softmax cross-entropy that turns logits into their gradient in place.
#ifndef LOCKSTEP_KERNELS_OPS_CROSS_ENTROPY_H_
#define LOCKSTEP_KERNELS_OPS_CROSS_ENTROPY_H_

#include <cstdint>

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

// The same over a vocabulary that is cut into parts, each with its columns of
// the logits (Shoeybi et al., arXiv:1909.08053, section 3): first every part
// takes its statistics, then each has all parts' and ends the work on its own.
//
// statistics[n] = largest logit, sum of exp(logit - largest), the target's
// logit (-infinity if it isn't in this part), 1 if that is the part's first
// largest. Rows without a target (target < 0) have some numbers too.
//   logits: (N, columns of ids [first_id, first_id + columns)) fp32 or bf16
//   target: (N,) int32, ids of the whole vocabulary   statistics: (N, 4) fp32
inline constexpr int64_t kCrossEntropyStatistics = 4;
absl::Status CrossEntropyStatistics(Stream& stream, const Tensor& logits,
                                    const Tensor& target, int64_t first_id,
                                    const Tensor& statistics);
// As CrossEntropy; parts are summed in their order, so all parts have the same
// bits.   statistics: (parts x N, 4) fp32, part by part in order of their ids
absl::Status CrossEntropyFromStatistics(
    Stream& stream, const Tensor& logits, const Tensor& target,
    int64_t first_id, const Tensor& statistics, const StepScalars* scalars,
    LogitsGradient gradient, const Tensor& loss, const Tensor& correct);

// *out (one fp64 in device memory) += sum of x in index order.
//   x: (N,) fp32
absl::Status SumInto(Stream& stream, const Tensor& x, double* out);

}  // namespace ops
}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_OPS_CROSS_ENTROPY_H_
