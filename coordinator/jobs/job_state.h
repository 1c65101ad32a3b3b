// The states of a job and the transitions between them.
#ifndef LOCKSTEP_COORDINATOR_JOBS_JOB_STATE_H_
#define LOCKSTEP_COORDINATOR_JOBS_JOB_STATE_H_

#include <string>

#include "absl/status/status.h"
#include "common/job_words.h"
#include "lockstep/v1/job_service.pb.h"

namespace lockstep {

using JobState = v1::JobState;

// Whether the transition table has the edge.
bool CanMove(JobState from, JobState to);

// "PENDING".
std::string JobStateWord(JobState state);
// "succeeded"; empty for OUTCOME_UNSPECIFIED.
std::string OutcomeWord(v1::Outcome outcome);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_JOBS_JOB_STATE_H_
