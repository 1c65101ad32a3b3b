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
  RankCounter(const ModelSpec& model, const TrainingSpec& training,
              const v1::Layout& layout, int stage)
      : training_(training),
        layout_(layout),
        stage_(stage),
        units_(UnitsOf(model, training, layout, stage)),
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
  static std::vector<Portion> UnitsOf(const ModelSpec& model,
                                      const TrainingSpec& training,
                                      const v1::Layout& layout, int stage) {
    const int64_t chunks = std::max<int64_t>(1, layout.virtual_stages());
    const std::vector<Portion> all =
        PlanStages(model, training.sequence_length, layout.pp() * chunks);
    std::vector<Portion> own;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      own.push_back(all[chunk * layout.pp() + stage]);
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
    // Origins of all rows, and of each chunk what it has of each segment: as
    // many as sequences, and one more where documents end.
    const int64_t segments = 2 * layout_.micro_batch() + 2;
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
  // Of the micro-batches under way.
  int64_t kept = 0;
  for (const PipelineAction& action : MakePipelineSchedule(
           layout_.schedule(),
           {stage_, static_cast<int>(layout_.pp()),
            static_cast<int>(units_.size()), micro_batches()})) {
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
      batches * (rows * 4 * 6 + 64) + states.Gathered() +
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
  v1::MemoryReport fullest;
  for (int stage = 0; stage < layout.pp(); ++stage) {
    const v1::MemoryReport report =
        RankCounter(model, training, layout, stage).Count();
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
