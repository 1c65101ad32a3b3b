// Heads: final norm, output product and loss. The last unit. A head makes its
// gradient in the same sweep as its loss, so that logits never exist for more
// than a few hundred rows at a time. Single-device code; inputs and their
// gradients are this rank's rows of the residual stream.
#ifndef LOCKSTEP_WORKER_NN_HEAD_H_
#define LOCKSTEP_WORKER_NN_HEAD_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/model_part.h"
#include "worker/nn/linear.h"
#include "worker/nn/parameter_store.h"
#include "worker/nn/pass_context.h"
#include "worker/nn/residual.h"

namespace lockstep {

// Sums over targets, in host memory.
struct LossSums {
  // Nats over valid targets; not yet divided by their number.
  double loss = 0.0;
  // Valid targets that have the largest logit (classification).
  int64_t correct = 0;
};

class Head {
 public:
  virtual ~Head() = default;
  // Adds to `sums` the loss of the micro-batch, adds to the parameters'
  // gradients, and returns the gradient of the input's sum, (n, C).
  virtual absl::StatusOr<OwnedTensor> ForwardBackward(
      const PassContext& context, Residual input, LossSums& sums) const = 0;
  // Loss alone.
  virtual absl::Status Evaluate(const PassContext& context, Residual input,
                                LossSums& sums) const = 0;
  // fp32 logits of the last row, (1, V), or of each sample, (S, classes).
  virtual absl::StatusOr<OwnedTensor> Logits(const PassContext& context,
                                             Residual input) const = 0;
};

std::unique_ptr<Head> MakeHead(const ModelPart& part,
                               const ParameterStore& store);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_HEAD_H_
