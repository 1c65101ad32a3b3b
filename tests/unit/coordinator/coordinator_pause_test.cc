// The coordinator after a pause of its own process: nothing could be heard
// meanwhile, so nobody is to blame for silence.
#include <string>

#include "gmock/gmock.h"
#include "tests/unit/coordinator/coordinator_fixture.h"

namespace lockstep {
namespace testing {
namespace {

class CoordinatorPauseTest : public CoordinatorFixture {
 protected:
  CoordinatorPauseTest() {
    Stop();
    options_.gangs.longest_tick_gap = absl::Seconds(2);
    Start();
  }
};

TEST_F(CoordinatorPauseTest, RunningJobOutlivesAPauseLongerThanALease) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  worker.StartGang();
  AwaitState(id, v1::JOB_STATE_RUNNING);
  clock_.Advance(absl::Minutes(1));
  // A decision on the queue tells that the tick after the pause is over.
  AwaitReason(Submit(1, "second"), "device");
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_TRUE(AwaitWorkerState("w0", "READY"));
}

TEST_F(CoordinatorPauseTest, ReservationOutlivesAPauseLongerThanItsTime) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  const auto prepare = worker.Await(v1::CoordinatorMessage::kPrepareGang);
  ASSERT_TRUE(prepare.has_value());
  clock_.Advance(absl::Minutes(1));
  AwaitReason(Submit(1, "second"), "device");
  worker.Accept(prepare->prepare_gang().gang());
  EXPECT_TRUE(worker.Await(v1::CoordinatorMessage::kCommitGang).has_value());
}

}  // namespace
}  // namespace testing
}  // namespace lockstep
