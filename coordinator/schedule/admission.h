// Admission: turns a submit request into the job that is stored, or says why it
// is refused. Fills in defaults, the checkpoint to start from, and, for an
// action, the source job's spec.
//
// Threads: Admit may be called from any thread.
#ifndef LOCKSTEP_COORDINATOR_SCHEDULE_ADMISSION_H_
#define LOCKSTEP_COORDINATOR_SCHEDULE_ADMISSION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/jobs/job_table.h"
#include "coordinator/schedule/cluster_view.h"
#include "lockstep/v1/job_service.pb.h"

namespace lockstep {

struct AdmittedJob {
  JobRecord record;
  std::vector<std::string> warnings;
};

// `cluster`: the workers that are present, for requests that must not wait.
//   INVALID_ARGUMENT: a refused spec or request. UNIMPLEMENTED: not built yet.
//   NOT_FOUND: no such job to resume or act on. FAILED_PRECONDITION: it fits
//     nowhere, what is to be resumed doesn't match or has no checkpoint, or it
//     would have to wait and must not.
absl::StatusOr<AdmittedJob> Admit(const v1::SubmitRequest& request,
                                  const JobTable& jobs,
                                  const ClusterView& cluster);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_SCHEDULE_ADMISSION_H_
