#include "common/clock.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"

namespace lockstep {
namespace {

using testing::FakeClock;

TEST(RealClockTest, WaitEndsAtTheTimeoutWhenTheConditionNeverHolds) {
  absl::Mutex mutex;
  bool never = false;
  const absl::Duration start = RealClock().Uptime();
  absl::MutexLock lock(&mutex);
  EXPECT_FALSE(RealClock().WaitFor(mutex, absl::Condition(&never),
                                   absl::Milliseconds(5)));
  EXPECT_GE(RealClock().Uptime() - start, absl::Milliseconds(5));
}

TEST(RealClockTest, WaitEndsAtOnceWhenTheConditionHolds) {
  absl::Mutex mutex;
  bool always = true;
  absl::MutexLock lock(&mutex);
  EXPECT_TRUE(
      RealClock().WaitFor(mutex, absl::Condition(&always), absl::Hours(1)));
}

TEST(FakeClockTest, WaitEndsWhenTheTestAdvancesPastTheTimeout) {
  FakeClock clock;
  absl::Mutex mutex;
  bool never = false;
  std::atomic<int> result{-1};
  std::thread waiter([&] {
    absl::MutexLock lock(&mutex);
    result = clock.WaitFor(mutex, absl::Condition(&never), absl::Hours(5));
  });
  ASSERT_TRUE(clock.AwaitWaiters(1));
  EXPECT_EQ(result, -1);
  clock.Advance(absl::Hours(5));
  waiter.join();
  EXPECT_EQ(result, 0);
}

TEST(FakeClockTest, NowAndUptimeMoveTogether) {
  FakeClock clock;
  const absl::Time now = clock.Now();
  const absl::Duration uptime = clock.Uptime();
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(clock.Now() - now, absl::Seconds(3));
  EXPECT_EQ(clock.Uptime() - uptime, absl::Seconds(3));
}

}  // namespace
}  // namespace lockstep
