#include "coordinator/jobs/job_report.h"

#include <algorithm>

#include "coordinator/jobs/job_state.h"

namespace lockstep {
namespace {

// Sequences that this job's own steps took, of which the last may be short when
// the job runs for epochs.
int64_t SamplesOf(const JobRecord& job,
                  const std::vector<AttemptRecord>& attempts, int64_t step) {
  const int64_t first =
      attempts.empty() ? 0 : attempts.front().facts.start_step();
  const int64_t samples =
      std::max<int64_t>(step - first, 0) * job.spec.train().global_batch();
  if (!job.spec.train().has_epochs() || attempts.empty()) return samples;
  const int64_t all =
      attempts.back().facts.train_samples() * job.spec.train().epochs();
  return all > 0 ? std::min(samples, all) : samples;
}

}  // namespace

v1::JobReport MakeJobReport(const JobRecord& job,
                            const std::vector<AttemptRecord>& attempts,
                            const std::vector<CheckpointRecord>& checkpoints,
                            const std::vector<v1::MemoryReport>& memory,
                            const HistorySummary& history) {
  v1::JobReport report;
  report.mutable_job()->set_id(job.id);
  report.mutable_job()->set_name(job.spec.name());
  report.mutable_job()->set_state(JobStateWord(job.state));
  report.mutable_job()->set_reason(job.reason);

  if (!attempts.empty()) {
    *report.mutable_layout() = attempts.back().layout.layout();
  }
  v1::JobReport::Progress& progress = *report.mutable_progress();
  progress.set_steps(job.steps);
  progress.set_tokens(history.tokens);
  v1::JobReport::Metrics& metrics = *report.mutable_metrics();
  if (history.last_step.has_value()) {
    progress.set_step(history.last_step->step());
    progress.set_samples(SamplesOf(job, attempts, history.last_step->step()));
    metrics.set_train_loss(history.last_step->loss());
    metrics.set_grad_norm(history.last_step->grad_norm());
  }
  if (history.last_evaluation.has_value()) {
    const v1::EvaluationReport& evaluation = *history.last_evaluation;
    metrics.set_validation_loss(evaluation.loss());
    if (evaluation.has_bits_per_byte()) {
      metrics.set_validation_bits_per_byte(evaluation.bits_per_byte());
    }
    if (evaluation.has_accuracy()) {
      metrics.set_validation_accuracy(evaluation.accuracy());
    }
  }
  v1::JobReport::Speed& speed = *report.mutable_speed();
  if (history.tokens_per_second.has_value()) {
    speed.set_tokens_per_second(*history.tokens_per_second);
  }
  if (history.step_seconds.has_value()) {
    speed.set_step_seconds(*history.step_seconds);
  }
  for (const v1::MemoryReport& rank : memory) *report.add_memory() = rank;
  for (const AttemptRecord& attempt : attempts) {
    v1::JobReport::Attempt& added = *report.add_attempts();
    added.set_generation(attempt.generation);
    added.set_outcome(OutcomeWord(attempt.outcome));
    added.set_cause(CauseWord(attempt.cause));
    if (attempt.first_rank.has_value()) {
      added.set_first_rank(*attempt.first_rank);
    }
    added.set_worker(attempt.worker);
    added.set_message(attempt.message);
  }
  if (!checkpoints.empty()) {
    report.mutable_checkpoint()->set_path(checkpoints.front().path);
    report.mutable_checkpoint()->set_step(checkpoints.front().step);
  }
  return report;
}

}  // namespace lockstep
