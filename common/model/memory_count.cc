#include "common/model/memory_count.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "common/model/activation_count.h"
#include "common/model/logical_tensor.h"
#include "common/model/model_part.h"
#include "common/model/pipeline_schedule.h"
#include "common/model/pipeline_sends.h"
#include "common/model/pipeline_stages.h"
#include "common/model/state_count.h"
#include "common/model/workspace.h"
#include "common/spec/job_spec.h"

namespace lockstep {
namespace {

// Most bytes of activations at a time, and whether ops take most then.
struct ActivationPeak {
  int64_t bytes = 0;
  // The same where ops of blocks run, and where the head does.
  int64_t in_blocks = 0;
  int64_t at_head = 0;
};

// One rank of a layout.
class RankCounter {
 public:
  // stages: of the layout, all.
  RankCounter(const ModelSpec& model, const TrainingSpec& training,
              const v1::Layout& layout, const std::vector<Portion>& stages,
              int stage)
      : training_(training),
        layout_(layout),
        stage_(stage),
        units_(UnitsOf(layout, stages, stage)),
        part_(PartOf(model, PlaceOf(layout), units_)) {
    for (const Portion& chunk : units_) {
      counters_.emplace_back(part_, chunk, ComputeDType(training.precision),
                             layout.micro_batch() * training.sequence_length,
                             layout);
    }
  }

  v1::MemoryReport Count() const;

 private:
  // The last rank of tensor parallelism has the largest portions.
  static TensorPlace PlaceOf(const v1::Layout& layout) {
    const auto tp = static_cast<int>(layout.tp());
    return {tp - 1, tp, layout.sequence_parallel()};
  }
  static std::vector<Portion> UnitsOf(const v1::Layout& layout,
                                      const std::vector<Portion>& stages,
                                      int stage) {
    std::vector<Portion> own;
    for (size_t next = stage; next < stages.size(); next += layout.pp()) {
      own.push_back(stages[next]);
    }
    return own;
  }
  int micro_batches() const {
    const int64_t shares = layout_.dp() * layout_.fsdp();
    const int64_t share = (training_.global_batch + shares - 1) / shares;
    return static_cast<int>(std::max<int64_t>(
        1, (share + layout_.micro_batch() - 1) / layout_.micro_batch()));
  }
  // What micro-batches keep and take while the schedule runs.
  ActivationPeak Activations() const;
  // Staged index tensors of a micro-batch.
  int64_t IndexBytes(const ActivationCounter& counter) const {
    const int64_t rows = counter.padded_rows();
    if (layout_.cp() == 1) return rows * 4 * 6 + 64;
    // Origins of all rows, and of each chunk what it has of each segment, where
    // documents have some tokens each.
    const int64_t segments =
        layout_.micro_batch() + 2 + layout_.cp() * rows / 16;
    return rows * 4 * 6 + layout_.cp() * (rows * 8 + 2 * segments * 8) + 64;
  }
  // On its way to and from other stages.
  int64_t Messages() const {
    if (layout_.pp() == 1) return 0;
    const auto chunks = static_cast<int64_t>(units_.size());
    // One received ahead, and those not yet taken.
    return (1 + MostSendsUnderWay(layout_.pp(), chunks)) *
           counters_.front().Own();
  }

  const TrainingSpec& training_;
  const v1::Layout& layout_;
  const int stage_;
  const std::vector<Portion> units_;
  const ModelPart part_;
  std::vector<ActivationCounter> counters_;
};

ActivationPeak RankCounter::Activations() const {
  using Kind = PipelineAction::Kind;
  ActivationPeak peak;
  const auto pp = static_cast<int>(layout_.pp());
  const auto chunks = static_cast<int>(units_.size());
  // What is under way no longer changes after a few rounds; but GPipe keeps
  // each micro-batch, and so one after the other is counted beside two.
  const bool keeps_all =
      pp > 1 && layout_.schedule() == v1::PIPELINE_SCHEDULE_GPIPE;
  const int counted =
      std::min(micro_batches(), keeps_all ? 2 : 4 * pp * chunks);
  // Of the micro-batches under way.
  int64_t kept =
      keeps_all ? (micro_batches() - counted) * counters_.front().Saved() : 0;
  for (const PipelineAction& action : MakePipelineSchedule(
           layout_.schedule(), {stage_, pp, chunks, counted})) {
    const ActivationCounter& counter = counters_[action.chunk];
    switch (action.kind) {
      case Kind::kForward:
        peak.in_blocks = std::max(peak.in_blocks, kept + counter.AtForward());
        kept += counter.Saved();
        break;
      case Kind::kBackward:
        kept -= counter.Saved();
        peak.at_head = std::max(peak.at_head, kept + counter.AtHead());
        peak.in_blocks = std::max(peak.in_blocks, kept + counter.AtBackward());
        break;
      case Kind::kBackwardInput:
        kept -= counter.Saved();
        peak.at_head = std::max(peak.at_head, kept + counter.AtHead());
        peak.in_blocks =
            std::max(peak.in_blocks, kept + counter.AtBackwardInput());
        kept += counter.SavedForMatrices();
        break;
      case Kind::kBackwardWeights:
        kept -= counter.SavedForMatrices();
        peak.in_blocks =
            std::max(peak.in_blocks, kept + counter.AtBackwardMatrices());
        break;
    }
  }
  peak.at_head += Messages();
  peak.in_blocks += Messages();
  peak.bytes = std::max(peak.at_head, peak.in_blocks);
  return peak;
}

v1::MemoryReport RankCounter::Count() const {
  const bool bf16 = training_.precision == v1::PRECISION_BF16;
  v1::MemoryReport report;
  const StateCounter states(part_, training_, layout_);
  report.set_parameters_bytes(states.Parameters());
  report.set_gradients_bytes(states.Gradients());
  const bool two_moments =
      training_.optimizer.name == v1::OPTIMIZER_NAME_ADAMW ||
      training_.optimizer.name == v1::OPTIMIZER_NAME_LAMB;
  report.set_optimizer_bytes(states.States(two_moments ? 8 : 4));

  const ActivationPeak activations = Activations();
  report.set_activations_bytes(activations.bytes);
  // Staged index tensors of each micro-batch under way, what is gathered and
  // reduced, what ops take. One collective runs at a time.
  const ActivationCounter& first = counters_.front();
  const int64_t rows = first.padded_rows();
  const int64_t batches =
      layout_.pp() == 1
          ? 1
          : std::min<int64_t>(micro_batches() * units_.size(),
                              layout_.schedule() == v1::PIPELINE_SCHEDULE_GPIPE
                                  ? micro_batches()
                                  : 3 * layout_.pp() * units_.size());
  const int64_t kept =
      batches * IndexBytes(first) + states.Gathered() +
      std::max(
          {states.ReduceScratch(),
           ReduceScratchBytes(first.Whole(), static_cast<int>(layout_.tp()))});
  const int64_t taken = OpWorkspaceBytes(part_.local, training_, rows);
  report.set_buffers_bytes(kept + std::max(taken, states.TiedGradients()));
  // Attention and norms take most in the blocks, where activations are not at
  // their most; products of bf16 take it at the head too. Tied gradients are
  // summed when activations have gone.
  report.set_peak_bytes(
      report.parameters_bytes() + report.gradients_bytes() +
      report.optimizer_bytes() + kept +
      std::max({activations.at_head + (bf16 ? taken : 0),
                activations.in_blocks + taken, states.TiedGradients()}));
  return report;
}

}  // namespace

v1::MemoryReport CountMemory(const ModelSpec& model,
                             const TrainingSpec& training,
                             const v1::Layout& layout) {
  const std::vector<Portion> stages =
      PlanStages(model, training.sequence_length,
                 layout.pp() * std::max<int64_t>(1, layout.virtual_stages()));
  v1::MemoryReport fullest;
  for (int stage = 0; stage < layout.pp(); ++stage) {
    const v1::MemoryReport report =
        RankCounter(model, training, layout, stages, stage).Count();
    if (report.peak_bytes() > fullest.peak_bytes()) fullest = report;
  }
  return fullest;
}

double TrainingFlopsPerToken(const ModelSpec& model, int64_t sequence_length) {
  return 6.0 * static_cast<double>(ParameterCount(model)) +
         12.0 * static_cast<double>(model.layers) *
             static_cast<double>(sequence_length) *
             static_cast<double>(model.heads * model.head_width);
}

}  // namespace lockstep
