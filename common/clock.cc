#include "common/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace lockstep {
namespace {

class HostClock : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }

  absl::Duration Uptime() const override {
    return absl::FromChrono(
        std::chrono::steady_clock::now().time_since_epoch());
  }

  bool WaitFor(absl::Mutex& mutex, const absl::Condition& condition,
               absl::Duration timeout) override {
    // Abseil waits on the wall clock: when that is set forward, wait on.
    const absl::Duration deadline = Uptime() + timeout;
    absl::Duration left = timeout;
    do {
      if (mutex.AwaitWithTimeout(condition, left)) return true;
      left = deadline - Uptime();
    } while (left > absl::ZeroDuration());
    return false;
  }
};

}  // namespace

Clock& RealClock() {
  static HostClock* const clock = new HostClock;
  return *clock;
}

}  // namespace lockstep
