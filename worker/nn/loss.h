// The loss of a block of logits: shared by the heads.
#ifndef LOCKSTEP_WORKER_NN_LOSS_H_
#define LOCKSTEP_WORKER_NN_LOSS_H_

#include "absl/status/status.h"
#include "kernels/ops/cross_entropy.h"
#include "worker/nn/head.h"
#include "worker/nn/pass_context.h"

namespace lockstep {

// Adds the rows' loss, and the number of right answers, to `sums`. With
// kInPlace the logits become their gradient. AddLoss takes those of this rank's
// ids, from `first_id` on; AddWholeLoss all of them.
//   logits: (n, V) fp32   targets: (n,) int32
absl::Status AddLoss(const PassContext& context, const Tensor& logits,
                     const Tensor& targets, int64_t first_id,
                     LogitsGradient gradient, LossSums& sums);
absl::Status AddWholeLoss(const PassContext& context, const Tensor& logits,
                          const Tensor& targets, LogitsGradient gradient,
                          LossSums& sums);

// `gradient` (fp32) in the dtype that products of this pass take: itself, or a
// bf16 copy in `storage`.
absl::StatusOr<Tensor> AsComputeType(const PassContext& context,
                                     const Tensor& gradient,
                                     OwnedTensor& storage);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LOSS_H_
