// The coordinator's gauges, looked up when somebody scrapes.
#ifndef LOCKSTEP_COORDINATOR_COORDINATOR_METRICS_H_
#define LOCKSTEP_COORDINATOR_COORDINATOR_METRICS_H_

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/metrics/registry.h"
#include "coordinator/jobs/job_table.h"
#include "coordinator/launch/rendezvous_store.h"
#include "coordinator/membership/worker_registry.h"
#include "coordinator/rpc/job_service.h"

namespace lockstep {

// Threads: all functions may be called from any thread.
class CoordinatorMetrics {
 public:
  // All must outlive it.
  CoordinatorMetrics(MetricsRegistry& registry, const JobTable& jobs,
                     const WorkerRegistry& workers,
                     const RendezvousStore& rendezvous,
                     const JobServiceImpl& job_service, Clock& clock);

  // Sets all gauges; series of jobs that ended a while ago go.
  void Collect();

 private:
  void CollectJob(const JobRecord& job);

  MetricsRegistry& registry_;
  const JobTable& jobs_;
  const WorkerRegistry& workers_;
  const RendezvousStore& rendezvous_;
  const JobServiceImpl& job_service_;
  Clock& clock_;
  absl::Mutex mutex_;
  // When a job with series was last seen running (Clock::Uptime).
  std::map<std::string, absl::Duration> seen_ ABSL_GUARDED_BY(mutex_);
};

// When jobs ended whose series are still there, though nobody may scrape them.
//
// Threads: all functions may be called from any thread.
class EndedJobs {
 public:
  // Times are Clock::Uptime().
  void Note(const std::string& job, absl::Duration now);
  // Drops the series of jobs that ended a while ago.
  void Purge(absl::Duration now, MetricsRegistry& registry);

 private:
  absl::Mutex mutex_;
  std::map<std::string, absl::Duration> ended_ ABSL_GUARDED_BY(mutex_);
};

// Counts a change of a job's state.
void CountMove(MetricsRegistry& registry, const JobRecord& job);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_COORDINATOR_METRICS_H_
