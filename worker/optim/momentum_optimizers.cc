#include "worker/optim/momentum_optimizers.h"

#include <utility>

#include "common/status_macros.h"
#include "kernels/ops/copy.h"
#include "kernels/ops/optimizer.h"
#include "worker/optim/state_arena.h"
#include "worker/optim/trust_ratio.h"

namespace lockstep {

SgdOptimizer::SgdOptimizer(const OptimizerSpec& spec,
                           const ParameterStore& store)
    : spec_(spec),
      store_(store),
      ranges_(UpdateRanges(store, RangeMerging::kNeighbours)) {}

absl::StatusOr<std::unique_ptr<Optimizer>> SgdOptimizer::Create(
    Stream& stream, const OptimizerSpec& spec, const ParameterStore& store) {
  std::unique_ptr<SgdOptimizer> optimizer(new SgdOptimizer(spec, store));
  ASSIGN_OR_RETURN(optimizer->momentum_, MakeStateArena(stream, store));
  return optimizer;
}

absl::Status SgdOptimizer::Step(Stream& stream, const StepScalars* scalars) {
  for (const UpdateRange& update : ranges_) {
    const ArenaSlicer at(store_, update);
    const ops::SgdConstants constants = {
        static_cast<float>(spec_.momentum),
        update.decay ? static_cast<float>(spec_.weight_decay) : 0.0f};
    RETURN_IF_ERROR(ops::Sgd(stream, constants, scalars, at.master(),
                             at.gradient(), at.Of(momentum_),
                             at.compute_copy()));
  }
  return absl::OkStatus();
}

std::vector<OptimizerState> SgdOptimizer::states() const {
  return {{"momentum", momentum_}};
}

LarsOptimizer::LarsOptimizer(const OptimizerSpec& spec,
                             const ParameterStore& store, ShardSum sum)
    : spec_(spec),
      store_(store),
      sum_(std::move(sum)),
      ranges_(UpdateRanges(store, RangeMerging::kNone)) {}

absl::StatusOr<std::unique_ptr<Optimizer>> LarsOptimizer::Create(
    Stream& stream, const OptimizerSpec& spec, const ParameterStore& store,
    ShardSum sum) {
  std::unique_ptr<LarsOptimizer> optimizer(
      new LarsOptimizer(spec, store, std::move(sum)));
  ASSIGN_OR_RETURN(optimizer->momentum_, MakeStateArena(stream, store));
  ASSIGN_OR_RETURN(optimizer->ratios_,
                   MakeRatios(stream, optimizer->ranges_.size()));
  return optimizer;
}

absl::Status LarsOptimizer::Step(Stream& stream, const StepScalars* scalars) {
  ASSIGN_OR_RETURN(const std::vector<double> weights,
                   MasterNorms(stream, store_, ranges_, sum_));
  ASSIGN_OR_RETURN(const std::vector<double> gradients,
                   GradientNorms(stream, store_, ranges_, sum_));
  StepScalars host;
  ASSIGN_OR_RETURN(host, ReadScalars(stream, scalars));
  std::vector<float> ratios(ranges_.size(), 1.0f);
  for (size_t i = 0; i < ranges_.size(); ++i) {
    // The update multiplies gradients by the clip factor, so their norm too.
    const double gradient = gradients[ranges_[i].tensor] * host.clip_factor;
    const double weight = weights[ranges_[i].tensor];
    if (ranges_[i].decay && weight > 0.0 && gradient > 0.0) {
      ratios[i] = static_cast<float>(spec_.trust_coefficient * weight /
                                     (gradient + spec_.weight_decay * weight));
    }
  }
  RETURN_IF_ERROR(ops::CopyFromHost(stream, ratios.data(), ratios_));
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const ArenaSlicer at(store_, ranges_[i]);
    const ops::LarsConstants constants = {
        static_cast<float>(spec_.momentum),
        ranges_[i].decay ? static_cast<float>(spec_.weight_decay) : 0.0f};
    RETURN_IF_ERROR(ops::Lars(
        stream, constants, scalars, ratios_->data<float>() + i, at.master(),
        at.gradient(), at.Of(momentum_), at.compute_copy()));
  }
  return absl::OkStatus();
}

std::vector<OptimizerState> LarsOptimizer::states() const {
  return {{"momentum", momentum_}};
}

}  // namespace lockstep
