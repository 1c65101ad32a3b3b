#include "common/serial_loop.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using testing::FakeClock;

constexpr absl::Duration kInterval = absl::Seconds(1);

class SerialLoopTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  std::atomic<int> ticks_{0};
  // Used on the loop only, and after Stop.
  std::vector<int> ran_;
  std::unique_ptr<SerialLoop> loop_ =
      SerialLoop::Start(clock_, kInterval, [this] { ++ticks_; });
};

TEST_F(SerialLoopTest, ClosuresRunInTheOrderOfTheirPosts) {
  for (int i = 0; i < 3; ++i) {
    loop_->Post([this, i] { ran_.push_back(i); });
  }
  loop_->Stop();
  EXPECT_THAT(ran_, ElementsAre(0, 1, 2));
}

TEST_F(SerialLoopTest, RunReturnsWhatTheFunctionReturns) {
  EXPECT_EQ(loop_->Run([] { return std::string("done"); }), "done");
  bool ran = false;
  loop_->Run([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST_F(SerialLoopTest, EachBatchIsFollowedByATick) {
  loop_->Run([] {});
  // The second closure runs after the tick of the first one's batch.
  EXPECT_GE(loop_->Run([this] { return ticks_.load(); }), 1);
}

TEST_F(SerialLoopTest, PassedIntervalsTickWithoutClosures) {
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_EQ(ticks_, 0);
  clock_.Advance(kInterval);
  while (ticks_ == 0) std::this_thread::yield();
}

TEST_F(SerialLoopTest, StopRunsWhatWasPostedAndDropsWhatComesLater) {
  loop_->Post([this] {
    ran_.push_back(1);
    // Before Stop or during it; either way it doesn't disturb.
    loop_->Post([] {});
  });
  loop_->Stop();
  loop_->Post([this] { ran_.push_back(2); });
  loop_->Stop();
  loop_.reset();
  EXPECT_THAT(ran_, ElementsAre(1));
}

TEST_F(SerialLoopTest, DestructorRunsWhatWasPosted) {
  loop_->Post([this] { ran_.push_back(1); });
  loop_.reset();
  EXPECT_THAT(ran_, ElementsAre(1));
}

TEST_F(SerialLoopTest, RunAfterStopEndsTheProcessInsteadOfWaitingForEver) {
  loop_->Stop();
  EXPECT_DEATH(loop_->Run([] {}), "has stopped");
}

}  // namespace
}  // namespace lockstep
