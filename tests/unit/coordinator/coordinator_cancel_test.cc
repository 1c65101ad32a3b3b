// Cancelling a job in each of its states: over gRPC, with workers that only
// pretend.
#include <string>

#include "gmock/gmock.h"
#include "tests/unit/coordinator/coordinator_fixture.h"

namespace lockstep {
namespace testing {
namespace {

class CoordinatorCancelTest : public CoordinatorFixture {};

TEST_F(CoordinatorCancelTest, CancelledPendingJobEndsAtOnce) {
  const std::string id = Submit(1);
  v1::JobInfo info;
  ASSERT_TRUE(Cancel(id, &info).ok());
  EXPECT_EQ(info.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(info.reason(), "cancelled by user");
  // Again changes nothing.
  ASSERT_TRUE(Cancel(id, &info).ok());
  EXPECT_EQ(info.state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(CoordinatorCancelTest, CancelledReservationIsDropped) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  const auto prepare = worker.Await(v1::CoordinatorMessage::kPrepareGang);
  v1::JobInfo info;
  ASSERT_TRUE(Cancel(id, &info).ok());
  EXPECT_EQ(info.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(worker.Await(v1::CoordinatorMessage::kStopGang).has_value());
  worker.Accept(prepare->prepare_gang().gang());
  EXPECT_TRUE(AwaitFreeDevices(1));
  EXPECT_FALSE(worker.Has(v1::CoordinatorMessage::kCommitGang));
}

TEST_F(CoordinatorCancelTest, CancelledStartingJobIsStoppedWithGrace) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  const auto prepare = worker.Await(v1::CoordinatorMessage::kPrepareGang);
  const v1::GangId gang = prepare->prepare_gang().gang();
  worker.Accept(gang);
  ASSERT_TRUE(worker.Await(v1::CoordinatorMessage::kCommitGang).has_value());
  v1::JobInfo info;
  ASSERT_TRUE(Cancel(id, &info).ok());
  EXPECT_EQ(info.state(), v1::JOB_STATE_STARTING);
  const auto stop = worker.Await(v1::CoordinatorMessage::kStopGang);
  ASSERT_TRUE(stop.has_value());
  EXPECT_GT(stop->stop_gang().grace().seconds(), 0);
  worker.Exited(gang, 0, v1::CAUSE_SIGNAL, "ended by SIGTERM", true);
  AwaitState(id, v1::JOB_STATE_CANCELLED);
}

TEST_F(CoordinatorCancelTest, CancelledRunningJobEndsCancelled) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  const v1::GangId gang = worker.StartGang().gang();
  AwaitState(id, v1::JOB_STATE_RUNNING);
  ASSERT_TRUE(Cancel(id).ok());
  ASSERT_TRUE(worker.Await(v1::CoordinatorMessage::kStopGang).has_value());
  worker.Exited(gang, 0, v1::CAUSE_SIGNAL, "ended by SIGTERM", true);
  const v1::JobInfo info = AwaitState(id, v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(info.cause(), v1::CAUSE_UNSPECIFIED);
  EXPECT_EQ(Report(id).attempts(0).outcome(), "cancelled");
  EXPECT_TRUE(AwaitFreeDevices(1));
}

TEST_F(CoordinatorCancelTest, AcknowledgedCancelSurvivesARestart) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  const v1::GangId gang = worker.StartGang().gang();
  AwaitState(id, v1::JOB_STATE_RUNNING);
  worker.Disconnect();
  ASSERT_TRUE(AwaitWorkerState("w0", "DISCONNECTED"));
  ASSERT_TRUE(Cancel(id).ok());
  Stop();
  Start();
  ASSERT_TRUE(worker.Connect(address(), {RunningRank(gang, 0)}).has_value());
  ASSERT_TRUE(worker.Await(v1::CoordinatorMessage::kStopGang).has_value());
  worker.Exited(gang, 0, v1::CAUSE_SIGNAL, "ended", true);
  AwaitState(id, v1::JOB_STATE_CANCELLED);
}

TEST_F(CoordinatorCancelTest, RankThatWillNotEndKeepsItsDeviceButNotTheJob) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  const v1::GangId gang = worker.StartGang().gang();
  AwaitState(id, v1::JOB_STATE_RUNNING);
  ASSERT_TRUE(Cancel(id).ok());
  for (int i = 0; i < 16; ++i) {
    v1::WorkerMessage heartbeat;
    heartbeat.mutable_heartbeat();
    worker.Send(heartbeat);
    ASSERT_TRUE(AwaitWorkerState("w0", "READY"));
    clock_.Advance(absl::Seconds(1));
  }
  AwaitState(id, v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(AwaitFreeDevices(0));
  worker.Exited(gang, 0, v1::CAUSE_SIGNAL, "ended at last", true);
  EXPECT_TRUE(AwaitFreeDevices(1));
}

}  // namespace
}  // namespace testing
}  // namespace lockstep
