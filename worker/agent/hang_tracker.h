// HangTracker: when one rank last made progress, and how long it may take.
//
// Every report of a rank is progress. The limit is max(hang timeout, 5 x the
// median step time); until a median exists it is 120 s, or the hang timeout
// where that is longer. (In other phases than training the gang table gives at
// least those 120 s too.)
//
// Times are Clock::Uptime(). Not thread-safe.
#ifndef LOCKSTEP_WORKER_AGENT_HANG_TRACKER_H_
#define LOCKSTEP_WORKER_AGENT_HANG_TRACKER_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace lockstep {

inline constexpr absl::Duration kDefaultHangTimeout = absl::Seconds(15);
inline constexpr absl::Duration kHangTimeoutBeforeMedian = absl::Seconds(120);

class HangTracker {
 public:
  HangTracker(absl::Duration start, absl::Duration hang_timeout);

  // A report arrived while the rank was in `step`.
  void Saw(absl::Duration now, int64_t step);

  absl::Duration Age(absl::Duration now) const { return now - last_; }
  absl::Duration Limit() const;
  // Absent: too few steps yet.
  std::optional<absl::Duration> MedianStep() const;

 private:
  const absl::Duration hang_timeout_;
  absl::Duration last_;
  // When `step_` was first seen; steps before that have their times below.
  int64_t step_ = 0;
  std::optional<absl::Duration> step_seen_;
  std::deque<absl::Duration> step_times_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_HANG_TRACKER_H_
