#include "worker/agent/hang_tracker.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr absl::Duration kStart = absl::Hours(1);

TEST(HangTrackerTest, BeforeAMedianExistsTheLimitIsTwoMinutes) {
  HangTracker tracker(kStart, absl::Seconds(15));
  EXPECT_EQ(tracker.Limit(), absl::Seconds(120));
  tracker.Saw(kStart + absl::Seconds(1), 1);
  tracker.Saw(kStart + absl::Seconds(2), 2);
  tracker.Saw(kStart + absl::Seconds(3), 3);
  EXPECT_EQ(tracker.Limit(), absl::Seconds(120));
}

TEST(HangTrackerTest, LongHangTimeoutCountsBeforeAMedianExistsToo) {
  EXPECT_EQ(HangTracker(kStart, absl::Minutes(5)).Limit(), absl::Minutes(5));
}

TEST(HangTrackerTest, FastStepsHaveTheHangTimeoutAsLimit) {
  HangTracker tracker(kStart, absl::Seconds(15));
  for (int step = 1; step <= 4; ++step) {
    tracker.Saw(kStart + step * absl::Seconds(1), step);
  }
  EXPECT_EQ(tracker.MedianStep(), absl::Seconds(1));
  EXPECT_EQ(tracker.Limit(), absl::Seconds(15));
}

TEST(HangTrackerTest, SlowStepsHaveFiveMediansAsLimit) {
  HangTracker tracker(kStart, absl::Seconds(15));
  // One step with an evaluation in it does not move the median.
  const int ends[] = {0, 10, 20, 120, 130, 140};
  for (int step = 1; step <= 6; ++step) {
    tracker.Saw(kStart + absl::Seconds(ends[step - 1]), step);
  }
  EXPECT_EQ(tracker.Limit(), absl::Seconds(50));
}

TEST(HangTrackerTest, EveryReportIsProgressAlsoWithinAStep) {
  HangTracker tracker(kStart, absl::Seconds(15));
  tracker.Saw(kStart + absl::Seconds(10), 1);
  tracker.Saw(kStart + absl::Seconds(12), 1);
  EXPECT_EQ(tracker.Age(kStart + absl::Seconds(14)), absl::Seconds(2));
  EXPECT_EQ(tracker.MedianStep(), std::nullopt);
}

TEST(HangTrackerTest, SkippedStepsShareTheirTime) {
  HangTracker tracker(kStart, absl::Seconds(1));
  for (int step = 10; step <= 50; step += 10) {
    tracker.Saw(kStart + step * absl::Seconds(1), step);
  }
  EXPECT_EQ(tracker.MedianStep(), absl::Seconds(1));
}

}  // namespace
}  // namespace lockstep
