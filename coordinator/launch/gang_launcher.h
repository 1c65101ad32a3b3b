// Builds what each rank of a gang is told: pure.
#ifndef LOCKSTEP_COORDINATOR_LAUNCH_GANG_LAUNCHER_H_
#define LOCKSTEP_COORDINATOR_LAUNCH_GANG_LAUNCHER_H_

#include <map>
#include <string>
#include <vector>

#include "coordinator/schedule/cluster_view.h"
#include "coordinator/store/job_store.h"
#include "lockstep/v1/worker_service.pb.h"

namespace lockstep {

struct LaunchOrder {
  v1::GangId gang;
  v1::JobSpec spec;
  v1::ResolvedLayout layout;
  Placement placement;
  std::string secret;
  // Checkpoint to start from; empty: from scratch.
  std::string resume_checkpoint;
  // It was written by another job.
  bool resume_other_job = false;
};

// One per rank, in rank order. Rank order is, fastest first: tp, cp, fsdp, dp,
// pp; the ranks of a replica group that see different data are fsdp x dp. The
// whole gang runs at the lowest CPU level of its workers.
std::vector<v1::RankAssignment> MakeAssignments(const LaunchOrder& order);

// The same by worker, ready to be sent.
std::map<std::string, v1::PrepareGang> MakePrepareGangs(
    const LaunchOrder& order);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_LAUNCH_GANG_LAUNCHER_H_
