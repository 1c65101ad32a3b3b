// Why a rank's process ended: what the worker saw, turned into a cause and a
// sentence for a person. Pure.
#ifndef LOCKSTEP_WORKER_AGENT_RANK_VERDICT_H_
#define LOCKSTEP_WORKER_AGENT_RANK_VERDICT_H_

#include <optional>
#include <string>

#include "lockstep/v1/worker_service.pb.h"

namespace lockstep {

// What the worker knows when a rank's process has ended.
struct RankEnd {
  // From wait(2).
  int wait_status = 0;
  // The rank said that its work was done.
  bool finished = false;
  // The rank's own last word, and whether it came after the worker had begun to
  // stop it.
  std::optional<v1::RankFailure> failure;
  bool failed_after_stop = false;
  // The worker had begun to stop it before, and why.
  std::optional<std::string> stop_reason;
  bool sent_term = false;
  bool sent_kill = false;
  // The worker killed it for making no progress.
  std::optional<std::string> hang;
  // The worker is shutting down.
  std::optional<std::string> shutdown;
  // The OOM killer's count rose since the rank started.
  bool oom_killed = false;
  // "step 12, training"; may be empty.
  std::string where;
  // Last line of its log; may be empty.
  std::string last_line;
};

// Fills in cause, message, exit_code, signal and secondary.
v1::RankExited JudgeRankEnd(const RankEnd& end);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_RANK_VERDICT_H_
