// Jobs that work on an earlier job's model: generate and evaluate.
#ifndef LOCKSTEP_CLI_ACTION_JOB_H_
#define LOCKSTEP_CLI_ACTION_JOB_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "lockstep/v1/job_service.pb.h"

namespace lockstep {

// Starts the source job's workers where a local cluster has none, submits a job
// of the source's spec with `action` (its source_job is filled in), hands each
// output to `sink`, and returns when the job has ended. Ctrl-C cancels it.
//   Errors of the job itself are printed; the exit code says how it ended.
absl::StatusOr<ExitCode> RunAction(
    const std::string& source_job, v1::Action action, CommandContext& context,
    ClusterSession& session, StopToken& stop,
    const std::function<void(const v1::ActionOutput&)>& sink);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_ACTION_JOB_H_
