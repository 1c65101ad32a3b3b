#include "worker/train/evaluator.h"

#include <algorithm>
#include <array>
#include <numbers>

#include "common/spec/job_spec.h"
#include "common/status_macros.h"
#include "worker/train/gather.h"

namespace lockstep {

absl::StatusOr<v1::EvaluationReport> Evaluate(const RankContext& context,
                                              const TrainingState& state,
                                              const Dataset& dataset,
                                              int64_t micro_batch) {
  Stream& stream = context.device.stream();
  ValidationBatches batches(dataset, context.share, micro_batch);
  const double count =
      static_cast<double>(std::max<int64_t>(1, batches.count()));
  double done = 0.0;
  LossSums sums;
  for (int64_t turn = 0; turn < batches.most_count(); ++turn) {
    const MicroBatch* batch = batches.Next();
    RETURN_IF_ERROR(state.pipeline->Evaluate(
        {stream,
         state.place,
         *state.parallel,
         {batch},
         [&](const DeviceBatch& staged) -> PassContext {
           return {stream,         ComputeDType(state.training_spec.precision),
                   nullptr,        staged,
                   *state.regions, *state.attention};
         },
         sums}));
    if (batch == nullptr) continue;
    v1::Progress progress;
    progress.set_phase("evaluating");
    progress.set_fraction(++done / count);
    context.reporter.SetProgress(state.step, progress);
  }
  std::array<double, 2> totals = {sums.loss, static_cast<double>(sums.correct)};
  if (!LossCounts(context, state)) totals = {};
  RETURN_IF_ERROR(SumOverRanks(context.world, absl::MakeSpan(totals)));

  v1::EvaluationReport report;
  const double targets =
      static_cast<double>(std::max<int64_t>(1, dataset.targets()));
  report.set_step(state.step);
  report.set_targets(dataset.targets());
  report.set_bytes(dataset.text_bytes());
  report.set_loss(totals[0] / targets);
  if (state.model_spec.task == v1::TASK_CLASSIFICATION) {
    report.set_accuracy(totals[1] / targets);
  } else if (dataset.text_bytes() > 0) {
    report.set_bits_per_byte(totals[0] / std::numbers::ln2 /
                             static_cast<double>(dataset.text_bytes()));
  }
  return report;
}

}  // namespace lockstep
