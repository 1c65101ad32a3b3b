// The states of a job and the transitions between them.
#ifndef LOCKSTEP_COORDINATOR_JOBS_JOB_STATE_H_
#define LOCKSTEP_COORDINATOR_JOBS_JOB_STATE_H_

#include <string>

#include "absl/status/status.h"
#include "lockstep/v1/job_service.pb.h"

namespace lockstep {

using JobState = v1::JobState;

// Whether the transition table has the edge.
bool CanMove(JobState from, JobState to);

// SUCCEEDED, FAILED or CANCELLED: no edge leads out of these.
bool IsTerminal(JobState state);

// "PENDING".
std::string JobStateWord(JobState state);
// "lost_worker"; empty for CAUSE_UNSPECIFIED.
std::string CauseWord(v1::Cause cause);
// "succeeded"; empty for OUTCOME_UNSPECIFIED.
std::string OutcomeWord(v1::Outcome outcome);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_JOBS_JOB_STATE_H_
