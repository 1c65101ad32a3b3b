// What a job's state means, and the words for a cause: for all programs.
#ifndef LOCKSTEP_COMMON_JOB_WORDS_H_
#define LOCKSTEP_COMMON_JOB_WORDS_H_

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "lockstep/v1/job_service.pb.h"

namespace lockstep {

// SUCCEEDED, FAILED or CANCELLED: no transition leads out of these.
inline bool IsEnded(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

// "lost_worker"; empty for CAUSE_UNSPECIFIED.
inline std::string CauseWord(v1::Cause cause) {
  if (cause == v1::CAUSE_UNSPECIFIED) return "";
  const std::string name = v1::Cause_Name(cause);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "CAUSE_"));
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_WORDS_H_
