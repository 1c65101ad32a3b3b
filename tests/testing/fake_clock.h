// FakeClock: a Clock that moves only when a test says so.
#ifndef LOCKSTEP_TESTS_TESTING_FAKE_CLOCK_H_
#define LOCKSTEP_TESTS_TESTING_FAKE_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/clock.h"

namespace lockstep {
namespace testing {

class FakeClock : public Clock {
 public:
  // Starts at 2026-01-01 00:00 UTC, uptime 1 h.
  FakeClock() = default;

  absl::Time Now() const override {
    absl::MutexLock lock(&mutex_);
    return absl::FromUnixSeconds(1767225600) + passed_;
  }

  absl::Duration Uptime() const override {
    absl::MutexLock lock(&mutex_);
    return absl::Hours(1) + passed_;
  }

  // Looks at the condition and the fake time every millisecond of real time.
  bool WaitFor(absl::Mutex& mutex, const absl::Condition& condition,
               absl::Duration timeout) override {
    const absl::Duration deadline = Uptime() + timeout;
    Add(1);
    bool holds = mutex.AwaitWithTimeout(condition, absl::ZeroDuration());
    while (!holds && Uptime() < deadline) {
      holds = mutex.AwaitWithTimeout(condition, absl::Milliseconds(1));
    }
    Add(-1);
    return holds;
  }

  void Advance(absl::Duration by) {
    absl::MutexLock lock(&mutex_);
    passed_ += by;
  }

  // Waits, at most 10 s of real time, until `count` threads wait on this clock;
  // false if they don't.
  bool AwaitWaiters(int count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [this, count]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return waiters_ >= count;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(10));
  }

 private:
  void Add(int waiters) {
    absl::MutexLock lock(&mutex_);
    waiters_ += waiters;
  }

  mutable absl::Mutex mutex_;
  absl::Duration passed_ ABSL_GUARDED_BY(mutex_);
  int waiters_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_FAKE_CLOCK_H_
