// AdamW and LAMB: first and second moment of every parameter.
#ifndef LOCKSTEP_WORKER_OPTIM_MOMENT_OPTIMIZERS_H_
#define LOCKSTEP_WORKER_OPTIM_MOMENT_OPTIMIZERS_H_

#include "kernels/ops/optimizer.h"
#include "worker/optim/optimizer.h"
#include "worker/optim/trust_ratio.h"
#include "worker/optim/update_range.h"

namespace lockstep {

class AdamWOptimizer : public Optimizer {
 public:
  static absl::StatusOr<std::unique_ptr<Optimizer>> Create(
      Stream& stream, const OptimizerSpec& spec, const ParameterStore& store);
  absl::Status Step(Stream& stream, const StepScalars* scalars) override;
  std::vector<OptimizerState> states() const override;

 private:
  AdamWOptimizer(const OptimizerSpec& spec, const ParameterStore& store);

  const OptimizerSpec spec_;
  const ParameterStore& store_;
  const std::vector<UpdateRange> ranges_;
  OwnedTensor first_moment_;   // (shard_elements,) fp32
  OwnedTensor second_moment_;  // (shard_elements,) fp32
};

class LambOptimizer : public Optimizer {
 public:
  static absl::StatusOr<std::unique_ptr<Optimizer>> Create(
      Stream& stream, const OptimizerSpec& spec, const ParameterStore& store,
      ShardSum sum);
  absl::Status Step(Stream& stream, const StepScalars* scalars) override;
  std::vector<OptimizerState> states() const override;

 private:
  LambOptimizer(const OptimizerSpec& spec, const ParameterStore& store,
                ShardSum sum);

  const OptimizerSpec spec_;
  const ParameterStore& store_;
  const ShardSum sum_;
  const std::vector<UpdateRange> ranges_;
  OwnedTensor first_moment_;   // (shard_elements,) fp32
  OwnedTensor second_moment_;  // (shard_elements,) fp32
  OwnedTensor ratios_;         // (ranges,) fp32
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_OPTIM_MOMENT_OPTIMIZERS_H_
