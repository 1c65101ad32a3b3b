#include "coordinator/coordinator_metrics.h"

#include <utility>

namespace lockstep {
namespace {

// So that the last values of a job that has ended are scraped too.
constexpr absl::Duration kKeepSeries = absl::Minutes(10);

constexpr JobState kAllStates[] = {
    v1::JOB_STATE_PENDING,    v1::JOB_STATE_STARTING,  v1::JOB_STATE_RUNNING,
    v1::JOB_STATE_RESTARTING, v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED,
    v1::JOB_STATE_CANCELLED};

}  // namespace

CoordinatorMetrics::CoordinatorMetrics(MetricsRegistry& registry,
                                       const JobTable& jobs,
                                       const WorkerRegistry& workers,
                                       const RendezvousStore& rendezvous,
                                       const JobServiceImpl& job_service,
                                       Clock& clock)
    : registry_(registry),
      jobs_(jobs),
      workers_(workers),
      rendezvous_(rendezvous),
      job_service_(job_service),
      clock_(clock) {}

void CoordinatorMetrics::Collect() {
  std::map<JobState, int64_t> states = jobs_.CountByState();
  for (const JobState state : kAllStates) {
    registry_.Set(metric_names::kJobs, {{"state", JobStateWord(state)}},
                  static_cast<double>(states[state]));
  }
  std::map<std::string, int64_t> workers = workers_.CountByState();
  for (const char* state : {"READY", "DISCONNECTED", "LOST"}) {
    registry_.Set(metric_names::kWorkers, {{"state", state}},
                  static_cast<double>(workers[state]));
  }
  const ClusterView cluster = workers_.View();
  const int64_t free = cluster.free_devices();
  registry_.Set(metric_names::kDevices, {{"state", "free"}},
                static_cast<double>(free));
  registry_.Set(metric_names::kDevices, {{"state", "busy"}},
                static_cast<double>(cluster.devices() - free));
  registry_.Set(metric_names::kWatchStreams, {},
                static_cast<double>(job_service_.open_streams()));

  registry_.Set(metric_names::kRendezvousKeys, {},
                static_cast<double>(rendezvous_.key_count()));

  absl::MutexLock lock(&mutex_);
  const absl::Duration now = clock_.Uptime();
  for (const JobRecord& job : jobs_.Running()) {
    CollectJob(job);
    seen_[job.id] = now;
  }
  for (auto job = seen_.begin(); job != seen_.end();) {
    if (job->second == now) {
      ++job;
      continue;
    }
    const auto record = jobs_.Get(job->first);
    if (record.ok()) CollectJob(*record);
    if (record.ok() && now - job->second < kKeepSeries) {
      ++job;
      continue;
    }
    registry_.RemoveSeries("job", job->first);
    job = seen_.erase(job);
  }
}

void CoordinatorMetrics::CollectJob(const JobRecord& job) {
  const auto history = jobs_.History(job.id);
  if (!history.ok()) return;
  const MetricLabels labels = {{"job", job.id}};
  const HistorySummary summary = (*history)->summary();
  registry_.Set(metric_names::kJobSteps, labels,
                static_cast<double>(job.steps));
  if (summary.last_step.has_value()) {
    const v1::StepReport& step = *summary.last_step;
    registry_.Set(metric_names::kJobStep, labels,
                  static_cast<double>(step.step()));
    registry_.Set(metric_names::kJobLossNats, labels, step.loss());
    registry_.Set(metric_names::kJobGradNorm, labels, step.grad_norm());
    registry_.Set(metric_names::kJobLearningRate, labels, step.learning_rate());
  }
  if (summary.last_evaluation.has_value()) {
    registry_.Set(metric_names::kJobValidationLossNats, labels,
                  summary.last_evaluation->loss());
  }
  const bool live = !IsEnded(job.state);
  registry_.Set(metric_names::kJobTokensPerSecond, labels,
                live ? summary.tokens_per_second.value_or(0) : 0);
  registry_.Set(
      metric_names::kJobMemoryBytes, labels,
      live ? static_cast<double>((*history)->progress().progress.memory_bytes())
           : 0);
}

void EndedJobs::Note(const std::string& job, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  ended_[job] = now;
}

void EndedJobs::Purge(absl::Duration now, MetricsRegistry& registry) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(ended_, [&](const auto& job) {
    if (now - job.second < kKeepSeries) return false;
    registry.RemoveSeries("job", job.first);
    return true;
  });
}

void CountMove(MetricsRegistry& registry, const JobRecord& job) {
  const std::string state = JobStateWord(job.state);
  registry.Increment(metric_names::kTransitions, {{"state", state}});
  if (IsEnded(job.state)) {
    registry.Increment(metric_names::kJobsEnded, {{"state", state}});
  }
  if (job.state == v1::JOB_STATE_STARTING && job.started.has_value()) {
    registry.Observe(metric_names::kQueueWaitSeconds, {},
                     absl::ToDoubleSeconds(*job.started - job.submitted));
  }
}

}  // namespace lockstep
