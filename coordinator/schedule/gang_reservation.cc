#include "coordinator/schedule/gang_reservation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep {

GangReservation::GangReservation(std::set<std::string> workers,
                                 absl::Duration deadline)
    : deadline_(deadline), workers_(std::move(workers)), waiting_(workers_) {}

void GangReservation::OnAnswer(const std::string& worker, bool accepted,
                               const std::string& reason) {
  if (state_ != State::kWaiting || workers_.count(worker) == 0) return;
  if (!accepted) {
    Refuse(absl::StrCat("worker ", worker, " refused: ", reason));
    return;
  }
  waiting_.erase(worker);
  if (waiting_.empty()) state_ = State::kAccepted;
}

void GangReservation::OnWorkerGone(const std::string& worker) {
  if (state_ != State::kWaiting || workers_.count(worker) == 0) return;
  Refuse(absl::StrCat("worker ", worker, " lost its connection"));
}

void GangReservation::OnTime(absl::Duration uptime) {
  if (state_ != State::kWaiting || uptime < deadline_) return;
  Refuse(absl::StrCat("no answer from worker ", absl::StrJoin(waiting_, ", ")));
}

void GangReservation::Refuse(std::string reason) {
  state_ = State::kRefused;
  reason_ = std::move(reason);
}

}  // namespace lockstep
