// AttemptVerdict: how an attempt ended, and which rank was to blame: the first
// that failed of its own, not one that only noticed. Pure.
#ifndef LOCKSTEP_COORDINATOR_RECOVERY_ATTEMPT_VERDICT_H_
#define LOCKSTEP_COORDINATOR_RECOVERY_ATTEMPT_VERDICT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/v1/job_service.pb.h"
#include "lockstep/v1/worker_service.pb.h"

namespace lockstep {

class AttemptVerdict {
 public:
  struct Failure {
    v1::Cause cause = v1::CAUSE_UNSPECIFIED;
    std::optional<int64_t> rank;
    std::string worker;
    std::string message;
  };

  // Each of these says whether it is now the first cause.
  bool NoteExit(const v1::RankExited& exit, const std::string& worker);
  // `rank`: the lowest of those that ran there.
  bool NoteLostWorker(const std::string& worker, int64_t rank,
                      const std::string& how);
  bool NoteFailure(Failure failure);

  // Something went wrong, if only that a rank noticed so.
  bool failed() const { return first_.has_value() || noticed_.has_value(); }
  // What to report: the first cause; where there is none, what the first rank
  // noticed. Only if failed().
  Failure failure() const;

 private:
  std::optional<Failure> first_;
  std::optional<Failure> noticed_;
};

// Whether a rank ended well.
bool IsCleanExit(const v1::RankExited& exit);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_RECOVERY_ATTEMPT_VERDICT_H_
