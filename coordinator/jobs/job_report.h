// Assembles the JobReport that `describe job -o json` prints: pure.
#ifndef LOCKSTEP_COORDINATOR_JOBS_JOB_REPORT_H_
#define LOCKSTEP_COORDINATOR_JOBS_JOB_REPORT_H_

#include <vector>

#include "coordinator/jobs/job_history.h"
#include "coordinator/store/job_store.h"
#include "lockstep/v1/step_report.pb.h"

namespace lockstep {

// `attempts` by generation; `checkpoints` newest first; `memory` by rank.
v1::JobReport MakeJobReport(const JobRecord& job,
                            const std::vector<AttemptRecord>& attempts,
                            const std::vector<CheckpointRecord>& checkpoints,
                            const std::vector<v1::MemoryReport>& memory,
                            const HistorySummary& history);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_JOBS_JOB_REPORT_H_
