#include "worker/agent/rank_verdict.h"

#include <sys/wait.h>

#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "worker/agent/rank_channel.h"

namespace lockstep {
namespace {

// "killed by signal 11 (Segmentation fault) in step 12, training; its log ends:
// ..."
std::string Sentence(const std::string& what, const RankEnd& end) {
  std::string text = what;
  if (!end.where.empty()) absl::StrAppend(&text, " in ", end.where);
  if (!end.last_line.empty()) {
    absl::StrAppend(&text, "; its log ends: ", end.last_line);
  }
  return text;
}

void SetVerdict(v1::RankExited& exited, v1::Cause cause,
                const std::string& message, bool secondary) {
  exited.set_cause(cause);
  exited.set_message(message);
  exited.set_secondary(secondary);
}

void JudgeExitCode(int code, const RankEnd& end, v1::RankExited& exited) {
  if (code == kRankExitDone && end.finished) return;  // ended well
  if (end.stop_reason.has_value()) {
    SetVerdict(exited, v1::CAUSE_EXIT,
               absl::StrCat("stopped: ", *end.stop_reason), true);
  } else if (code == kRankExitAborted) {
    SetVerdict(exited, v1::CAUSE_INTERNAL,
               Sentence("lost its channel to the worker", end), false);
  } else if (code == kRankExitDone) {
    SetVerdict(exited, v1::CAUSE_EXIT,
               Sentence("exited with code 0 before its work was done", end),
               false);
  } else {
    SetVerdict(exited, v1::CAUSE_EXIT,
               Sentence(absl::StrCat("exited with code ", code), end), false);
  }
}

void JudgeSignal(int signal, const RankEnd& end, v1::RankExited& exited) {
  const bool ours = (signal == SIGTERM && end.sent_term) ||
                    (signal == SIGKILL && end.sent_kill);
  if (ours) {
    SetVerdict(
        exited, v1::CAUSE_SIGNAL,
        absl::StrCat("stopped: ", end.stop_reason.value_or("by its worker")),
        true);
  } else if (signal == SIGKILL && end.oom_killed) {
    SetVerdict(exited, v1::CAUSE_OOM_KILL,
               Sentence("killed by the kernel's out-of-memory killer", end),
               false);
  } else {
    SetVerdict(exited, v1::CAUSE_SIGNAL,
               Sentence(absl::StrCat("killed by signal ", signal, " (",
                                     strsignal(signal), ")"),
                        end),
               false);
  }
}

}  // namespace

v1::RankExited JudgeRankEnd(const RankEnd& end) {
  v1::RankExited exited;
  if (WIFEXITED(end.wait_status)) {
    exited.set_exit_code(WEXITSTATUS(end.wait_status));
  } else if (WIFSIGNALED(end.wait_status)) {
    exited.set_signal(WTERMSIG(end.wait_status));
  }
  const bool done = end.finished && exited.has_exit_code() &&
                    exited.exit_code() == kRankExitDone;
  if (end.hang.has_value()) {
    SetVerdict(exited, v1::CAUSE_HANG, *end.hang, false);
  } else if (end.shutdown.has_value() && !done) {
    SetVerdict(exited, v1::CAUSE_LOST_WORKER, *end.shutdown, false);
  } else if (end.failure.has_value()) {
    const v1::Cause cause = end.failure->cause();
    SetVerdict(exited,
               cause == v1::CAUSE_UNSPECIFIED ? v1::CAUSE_INTERNAL : cause,
               end.failure->message(),
               end.failure->secondary() || end.failed_after_stop);
  } else if (exited.has_signal()) {
    JudgeSignal(static_cast<int>(exited.signal()), end, exited);
  } else {
    JudgeExitCode(static_cast<int>(exited.exit_code()), end, exited);
  }
  return exited;
}

}  // namespace lockstep
