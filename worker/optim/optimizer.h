// Optimizer: its states, in flat arenas beside the parameters', and the update.
// Weight decay acts on matrices and embeddings only; LARS and LAMB scale those
// same tensors, each by the norms of the whole logical tensor.
#ifndef LOCKSTEP_WORKER_OPTIM_OPTIMIZER_H_
#define LOCKSTEP_WORKER_OPTIM_OPTIMIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/spec/training_spec.h"
#include "kernels/owned_tensor.h"
#include "kernels/step_scalars.h"
#include "kernels/stream.h"
#include "worker/nn/parameter_store.h"
#include "worker/optim/trust_ratio.h"

namespace lockstep {

// One state of every element of this rank's shards, one shard after another.
// `kind` is a checkpoint's: "first_moment", "second_moment", "momentum".
struct OptimizerState {
  std::string kind;
  Tensor values;  // (shard_elements,) fp32
};

// Threads: one at a time. `store` must outlive it.
class Optimizer {
 public:
  // States start at zero. RESOURCE_EXHAUSTED if the device's limit is passed.
  // `sum` adds over the ranks among which the store is sharded.
  static absl::StatusOr<std::unique_ptr<Optimizer>> Create(
      Stream& stream, const OptimizerSpec& spec, const ParameterStore& store,
      ShardSum sum = nullptr);
  virtual ~Optimizer() = default;

  // One update of all trainable parameters, and of their bf16 copies. Consumes
  // the gradients: their values are undefined afterwards. `scalars`, in device
  // memory, give rate, clip factor and bias corrections; when they say that the
  // norm was not finite nothing changes.
  virtual absl::Status Step(Stream& stream, const StepScalars* scalars) = 0;
  virtual std::vector<OptimizerState> states() const = 0;
};

// Sets the fields of `scalars` that depend on the step alone.
void SetBiasCorrections(const OptimizerSpec& spec, int64_t step,
                        StepScalars& scalars);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_OPTIM_OPTIMIZER_H_
