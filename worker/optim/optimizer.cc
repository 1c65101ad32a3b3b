#include "worker/optim/optimizer.h"

#include <cmath>
#include <utility>

#include "worker/optim/moment_optimizers.h"
#include "worker/optim/momentum_optimizers.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<Optimizer>> Optimizer::Create(
    Stream& stream, const OptimizerSpec& spec, const ParameterStore& store,
    ShardSum sum) {
  switch (spec.name) {
    case v1::OPTIMIZER_NAME_SGD:
      return SgdOptimizer::Create(stream, spec, store);
    case v1::OPTIMIZER_NAME_ADAMW:
      return AdamWOptimizer::Create(stream, spec, store);
    case v1::OPTIMIZER_NAME_LARS:
      return LarsOptimizer::Create(stream, spec, store, std::move(sum));
    case v1::OPTIMIZER_NAME_LAMB:
      return LambOptimizer::Create(stream, spec, store, std::move(sum));
    case v1::OPTIMIZER_NAME_UNSPECIFIED:
    case v1::OptimizerName_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::OptimizerName_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return absl::InternalError("optimizer without a name in a checked spec");
}

void SetBiasCorrections(const OptimizerSpec& spec, int64_t step,
                        StepScalars& scalars) {
  const double t = static_cast<double>(step);
  scalars.bias_correction1 = static_cast<float>(1.0 - std::pow(spec.beta1, t));
  scalars.bias_correction2 = static_cast<float>(1.0 - std::pow(spec.beta2, t));
}

}  // namespace lockstep
