#include "worker/optim/moment_optimizers.h"

#include <utility>

#include "common/status_macros.h"
#include "kernels/ops/copy.h"
#include "worker/optim/state_arena.h"
#include "worker/optim/trust_ratio.h"

namespace lockstep {
namespace {

ops::AdamWConstants Constants(const OptimizerSpec& spec, bool decay) {
  return {static_cast<float>(spec.beta1), static_cast<float>(spec.beta2),
          static_cast<float>(spec.epsilon),
          decay ? static_cast<float>(spec.weight_decay) : 0.0f};
}

}  // namespace

AdamWOptimizer::AdamWOptimizer(const OptimizerSpec& spec,
                               const ParameterStore& store)
    : spec_(spec),
      store_(store),
      ranges_(UpdateRanges(store, RangeMerging::kNeighbours)) {}

absl::StatusOr<std::unique_ptr<Optimizer>> AdamWOptimizer::Create(
    Stream& stream, const OptimizerSpec& spec, const ParameterStore& store) {
  std::unique_ptr<AdamWOptimizer> optimizer(new AdamWOptimizer(spec, store));
  ASSIGN_OR_RETURN(optimizer->first_moment_, MakeStateArena(stream, store));
  ASSIGN_OR_RETURN(optimizer->second_moment_, MakeStateArena(stream, store));
  return optimizer;
}

absl::Status AdamWOptimizer::Step(Stream& stream, const StepScalars* scalars) {
  for (const UpdateRange& update : ranges_) {
    const ArenaSlicer at(store_, update);
    RETURN_IF_ERROR(ops::AdamW(stream, Constants(spec_, update.decay), scalars,
                               at.master(), at.gradient(), at.Of(first_moment_),
                               at.Of(second_moment_), at.compute_copy()));
  }
  return absl::OkStatus();
}

std::vector<OptimizerState> AdamWOptimizer::states() const {
  return {{"first_moment", first_moment_}, {"second_moment", second_moment_}};
}

LambOptimizer::LambOptimizer(const OptimizerSpec& spec,
                             const ParameterStore& store, ShardSum sum)
    : spec_(spec),
      store_(store),
      sum_(std::move(sum)),
      ranges_(UpdateRanges(store, RangeMerging::kNone)) {}

absl::StatusOr<std::unique_ptr<Optimizer>> LambOptimizer::Create(
    Stream& stream, const OptimizerSpec& spec, const ParameterStore& store,
    ShardSum sum) {
  std::unique_ptr<LambOptimizer> optimizer(
      new LambOptimizer(spec, store, std::move(sum)));
  ASSIGN_OR_RETURN(optimizer->first_moment_, MakeStateArena(stream, store));
  ASSIGN_OR_RETURN(optimizer->second_moment_, MakeStateArena(stream, store));
  ASSIGN_OR_RETURN(optimizer->ratios_,
                   MakeRatios(stream, optimizer->ranges_.size()));
  return optimizer;
}

absl::Status LambOptimizer::Step(Stream& stream, const StepScalars* scalars) {
  // You et al., arXiv:1904.00962, algorithm 2.
  for (const UpdateRange& update : ranges_) {
    const ArenaSlicer at(store_, update);
    RETURN_IF_ERROR(ops::LambMoments(
        stream, Constants(spec_, update.decay), scalars, at.master(),
        at.gradient(), at.Of(first_moment_), at.Of(second_moment_)));
  }
  ASSIGN_OR_RETURN(const std::vector<double> weights,
                   MasterNorms(stream, store_, ranges_, sum_));
  ASSIGN_OR_RETURN(const std::vector<double> steps,
                   GradientNorms(stream, store_, ranges_, sum_));
  std::vector<float> ratios(ranges_.size(), 1.0f);
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const double weight = weights[ranges_[i].tensor];
    const double step = steps[ranges_[i].tensor];
    if (ranges_[i].decay && weight > 0.0 && step > 0.0) {
      ratios[i] = static_cast<float>(weight / step);
    }
  }
  RETURN_IF_ERROR(ops::CopyFromHost(stream, ratios.data(), ratios_));
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const ArenaSlicer at(store_, ranges_[i]);
    RETURN_IF_ERROR(ops::LambApply(stream, scalars, ratios_->data<float>() + i,
                                   at.master(), at.gradient(),
                                   at.compute_copy()));
  }
  return absl::OkStatus();
}

std::vector<OptimizerState> LambOptimizer::states() const {
  return {{"first_moment", first_moment_}, {"second_moment", second_moment_}};
}

}  // namespace lockstep
