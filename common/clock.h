// Clock: the time, injected, so that tests can drive it
// (tests/testing/fake_clock.h).
//
//   absl::MutexLock lock(&mutex_);
//   if (!clock_.WaitFor(mutex_, absl::Condition(&stopped_), interval)) Tick();
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_COMMON_CLOCK_H_
#define LOCKSTEP_COMMON_CLOCK_H_

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace lockstep {

class Clock {
 public:
  virtual ~Clock() = default;

  // Wall time, for stamps that people read. It may jump.
  virtual absl::Time Now() const = 0;

  // Time since some fixed moment, for ages and deadlines. It never jumps, and
  // stands still while the host is suspended.
  virtual absl::Duration Uptime() const = 0;

  // Waits until `condition` holds or `timeout` has passed, and says whether it
  // holds. `mutex` must be held, and is while the condition is evaluated.
  virtual bool WaitFor(absl::Mutex& mutex, const absl::Condition& condition,
                       absl::Duration timeout) = 0;
};

// The host's clock. Lives for ever.
Clock& RealClock();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLOCK_H_
