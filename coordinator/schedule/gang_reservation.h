// GangReservation: the first half of a two-phase start. All workers of a gang
// are asked to prepare; only when all have agreed may it be committed. One
// refusal, one worker gone or the deadline cancels it for all. Pure: the caller
// sends the messages and owns the clock.
#ifndef LOCKSTEP_COORDINATOR_SCHEDULE_GANG_RESERVATION_H_
#define LOCKSTEP_COORDINATOR_SCHEDULE_GANG_RESERVATION_H_

#include <set>
#include <string>

#include "absl/time/time.h"

namespace lockstep {

class GangReservation {
 public:
  enum class State { kWaiting, kAccepted, kRefused };

  // `deadline` on the caller's clock (Clock::Uptime).
  GangReservation(std::set<std::string> workers, absl::Duration deadline);

  // Answers of workers that were not asked, and those after a refusal, change
  // nothing.
  void OnAnswer(const std::string& worker, bool accepted,
                const std::string& reason);
  void OnWorkerGone(const std::string& worker);
  void OnTime(absl::Duration uptime);
  // Moves the deadline.
  void Extend(absl::Duration by) { deadline_ += by; }

  State state() const { return state_; }
  // Why it was refused, for a person.
  const std::string& reason() const { return reason_; }

 private:
  void Refuse(std::string reason);

  absl::Duration deadline_;
  std::set<std::string> workers_;
  std::set<std::string> waiting_;
  State state_ = State::kWaiting;
  std::string reason_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_SCHEDULE_GANG_RESERVATION_H_
