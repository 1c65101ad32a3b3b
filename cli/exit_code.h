// Exit codes of the command line (design.md section 3).
#ifndef LOCKSTEP_CLI_EXIT_CODE_H_
#define LOCKSTEP_CLI_EXIT_CODE_H_

#include "absl/status/status.h"
#include "common/job_words.h"
#include "lockstep/v1/job_service.pb.h"

namespace lockstep {

enum class ExitCode {
  kDone = 0,
  // The job failed, or something inside did.
  kFailed = 1,
  // Bad usage, a refused spec, an unknown name, permission denied.
  kRefused = 2,
  // The cluster can't be reached.
  kUnreachable = 3,
  kCancelled = 4,
  // `wait` ran out of time.
  kTimedOut = 5,
};

// What a command ends with that failed with `status`.
ExitCode ExitCodeOf(const absl::Status& status);

// What a followed job's end means. `state` must be an end state.
ExitCode ExitCodeOf(v1::JobState state);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_EXIT_CODE_H_
