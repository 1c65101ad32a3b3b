#include "coordinator/recovery/attempt_verdict.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log.h"

namespace lockstep {
namespace {

// For a worker that gave no cause.
v1::Cause CauseOf(const v1::RankExited& exit) {
  if (exit.cause() != v1::CAUSE_UNSPECIFIED) return exit.cause();
  return exit.has_signal() ? v1::CAUSE_SIGNAL : v1::CAUSE_EXIT;
}

std::string MessageOf(const v1::RankExited& exit) {
  if (!exit.message().empty()) return exit.message();
  if (exit.has_signal()) return absl::StrCat("ended by signal ", exit.signal());
  return absl::StrCat("exited with code ", exit.exit_code());
}

}  // namespace

bool IsCleanExit(const v1::RankExited& exit) {
  return exit.cause() == v1::CAUSE_UNSPECIFIED && !exit.has_signal() &&
         exit.exit_code() == 0 && !exit.secondary();
}

bool AttemptVerdict::NoteExit(const v1::RankExited& exit,
                              const std::string& worker) {
  if (IsCleanExit(exit)) return false;
  Failure failure{CauseOf(exit), exit.rank(), worker, MessageOf(exit)};
  if (!exit.secondary()) return NoteFailure(std::move(failure));
  if (!noticed_.has_value()) noticed_ = std::move(failure);
  return false;
}

bool AttemptVerdict::NoteLostWorker(const std::string& worker, int64_t rank,
                                    const std::string& how) {
  return NoteFailure({v1::CAUSE_LOST_WORKER, rank, worker,
                      absl::StrCat("worker ", worker, " is lost: ", how)});
}

bool AttemptVerdict::NoteFailure(Failure failure) {
  if (first_.has_value()) return false;
  first_ = std::move(failure);
  return true;
}

AttemptVerdict::Failure AttemptVerdict::failure() const {
  CHECK(failed()) << "nothing has failed";
  if (first_.has_value()) return *first_;
  Failure failure = *noticed_;
  failure.message =
      absl::StrCat("no rank gave a cause of its own; rank ",
                   failure.rank.value_or(0), " noticed: ", failure.message);
  return failure;
}

}  // namespace lockstep
