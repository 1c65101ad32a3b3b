// Which pending jobs start now, where, and why the others wait. Pure.
//
// Jobs start strictly in the order of submission: the first one that must wait
// for devices which others hold makes all behind it wait too, so that no job
// starves. A job that the present workers couldn't run even if all their
// devices were free holds up nobody: it waits for workers, not for jobs.
#ifndef LOCKSTEP_COORDINATOR_SCHEDULE_JOB_QUEUE_H_
#define LOCKSTEP_COORDINATOR_SCHEDULE_JOB_QUEUE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/plan/layout_resolver.h"
#include "coordinator/schedule/cluster_view.h"
#include "coordinator/store/job_store.h"

namespace lockstep {

struct QueuedJob {
  const JobRecord* record = nullptr;
  // Set while it waits before it is tried again, after a worker refused it.
  std::string held_back;
  // Whether those behind it wait with it: they don't for one that is refused
  // again and again.
  bool keeps_place = true;
};

struct StartDecision {
  std::string job;
  v1::ResolvedLayout layout;
  Placement placement;
};

struct QueueDecision {
  std::vector<StartDecision> starts;
  // For a person, by job: of each that doesn't start.
  std::map<std::string, std::string> reasons;
};

// `jobs` in submit order.
QueueDecision DecideQueue(const std::vector<QueuedJob>& jobs,
                          ClusterView cluster);

// Layout and devices of one job on the free devices of `cluster`.
//   FAILED_PRECONDITION: it can't run there even if all devices were free.
//   UNAVAILABLE: it has to wait. Messages are fit for a reason.
//   Others as ResolveLayout.
absl::StatusOr<StartDecision> PlaceJob(const JobRecord& job,
                                       const ClusterView& cluster);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_SCHEDULE_JOB_QUEUE_H_
