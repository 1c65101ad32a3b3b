// The coordinator when ranks fail, workers are lost and come back, and when it
// is started again itself: over gRPC, with workers that only pretend.
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "tests/unit/coordinator/coordinator_fixture.h"

namespace lockstep {
namespace testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CoordinatorFailureTest : public CoordinatorFixture {};

TEST_F(CoordinatorFailureTest, FirstFailureIsNamedAndTheRestIsStoppedAtOnce) {
  FakeWorker a("a", "i1", 1);
  FakeWorker b("b", "i1", 1);
  ASSERT_TRUE(a.Connect(address()).has_value());
  ASSERT_TRUE(b.Connect(address()).has_value());
  const std::string id = Submit(2);
  std::thread other([&] { b.StartGang(); });
  const v1::GangId gang = a.StartGang().gang();
  other.join();
  AwaitState(id, v1::JOB_STATE_RUNNING);
  // Rank 0 notices first, but rank 1 is to blame.
  a.Exited(gang, 0, v1::CAUSE_EXIT, "connection closed by peer", true);
  EXPECT_TRUE(b.Await(v1::CoordinatorMessage::kStopGang).has_value());
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
  b.Exited(gang, 1, v1::CAUSE_OUT_OF_MEMORY, "activation: 5 GiB of 4");
  const v1::JobInfo info = AwaitState(id, v1::JOB_STATE_FAILED);
  EXPECT_THAT(info.reason(),
              AllOf(HasSubstr("rank 1 on worker b"), HasSubstr("out_of_memory"),
                    HasSubstr("5 GiB of 4")));
  EXPECT_EQ(info.cause(), v1::CAUSE_OUT_OF_MEMORY);
  const v1::JobReport report = Report(id);
  EXPECT_EQ(report.attempts(0).outcome(), "failed");
  EXPECT_EQ(report.attempts(0).first_rank(), 1);
  EXPECT_EQ(report.attempts(0).worker(), "b");
  EXPECT_TRUE(AwaitFreeDevices(2));
}

TEST_F(CoordinatorFailureTest, LostWorkerFailsItsJobAndStopsTheOthers) {
  FakeWorker a("a", "i1", 1);
  FakeWorker b("b", "i1", 1);
  ASSERT_TRUE(a.Connect(address()).has_value());
  ASSERT_TRUE(b.Connect(address()).has_value());
  const std::string id = Submit(2);
  std::thread other([&] { b.StartGang(); });
  const v1::GangId gang = a.StartGang().gang();
  other.join();
  AwaitState(id, v1::JOB_STATE_RUNNING);
  b.Disconnect();
  ASSERT_TRUE(AwaitWorkerState("b", "DISCONNECTED"));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
  // Its peer notices; the broken stream says why, long before the lease ends.
  ASSERT_TRUE(a.AwaitAcknowledged(
      a.Exited(gang, 0, v1::CAUSE_EXIT, "peer is gone", true)));
  clock_.Advance(absl::Seconds(4));
  EXPECT_THAT(AwaitState(id, v1::JOB_STATE_FAILED).reason(),
              HasSubstr("its stream broke"));
  const v1::JobReport report = Report(id);
  EXPECT_EQ(report.job().state(), "FAILED");
  EXPECT_EQ(report.attempts(0).outcome(), "lost");
  EXPECT_EQ(report.attempts(0).cause(), "lost_worker");
  EXPECT_EQ(report.attempts(0).worker(), "b");
  EXPECT_EQ(report.attempts(0).first_rank(), 1);
}

TEST_F(CoordinatorFailureTest, SilentWorkerIsLostWhenItsLeaseEnds) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  worker.StartGang();
  AwaitState(id, v1::JOB_STATE_RUNNING);
  clock_.Advance(absl::Seconds(11));
  const v1::JobInfo info = AwaitState(id, v1::JOB_STATE_FAILED);
  EXPECT_EQ(info.cause(), v1::CAUSE_LOST_WORKER);
  EXPECT_THAT(info.reason(), HasSubstr("nothing was heard of it"));
  EXPECT_TRUE(worker.AwaitEnd());
  EXPECT_TRUE(AwaitWorkerState("w0", "LOST"));
}

TEST_F(CoordinatorFailureTest, RestartedWorkerLosesItsOldRanksAtOnce) {
  FakeWorker old("w0", "i1", 1);
  ASSERT_TRUE(old.Connect(address()).has_value());
  const std::string id = Submit(1);
  old.StartGang();
  AwaitState(id, v1::JOB_STATE_RUNNING);
  old.Disconnect();
  ASSERT_TRUE(AwaitWorkerState("w0", "DISCONNECTED"));
  FakeWorker again("w0", "i2", 1);
  ASSERT_TRUE(again.Connect(address()).has_value());
  EXPECT_THAT(AwaitState(id, v1::JOB_STATE_FAILED).reason(),
              HasSubstr("it was started again"));
  EXPECT_TRUE(AwaitFreeDevices(1));
}

TEST_F(CoordinatorFailureTest, ReconnectedWorkerIsAdoptedAndNothingIsLost) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  const v1::GangId gang = worker.StartGang().gang();
  AwaitState(id, v1::JOB_STATE_RUNNING);
  ASSERT_TRUE(worker.AwaitAcknowledged(worker.Step(gang, 1)));
  worker.Disconnect();
  ASSERT_TRUE(AwaitWorkerState("w0", "DISCONNECTED"));
  const auto welcome = worker.Connect(address(), {RunningRank(gang, 0)});
  ASSERT_TRUE(welcome.has_value());
  EXPECT_EQ(welcome->stale_size(), 0);
  worker.Step(gang, 2);
  worker.Checkpoint(gang, 2);
  worker.Exited(gang, 0);
  EXPECT_EQ(AwaitState(id, v1::JOB_STATE_SUCCEEDED).step(), 2);
}

TEST_F(CoordinatorFailureTest, RanksOfAnUnknownGangAreStale) {
  FakeWorker worker("w0", "i1", 1);
  v1::GangId gang;
  gang.set_job("gone-1234");
  gang.set_generation(7);
  const auto welcome = worker.Connect(address(), {RunningRank(gang, 0)});
  ASSERT_TRUE(welcome.has_value());
  ASSERT_EQ(welcome->stale_size(), 1);
  EXPECT_EQ(welcome->stale(0).job(), "gone-1234");
}

TEST_F(CoordinatorFailureTest, RestartedCoordinatorAdoptsRunningRanks) {
  FakeWorker worker("w0", "i1", 2);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(2);
  const v1::PrepareGang prepare = worker.StartGang();
  const v1::GangId gang = prepare.gang();
  AwaitState(id, v1::JOB_STATE_RUNNING);
  worker.Step(gang, 1);
  // One rank ends, and that is acknowledged, before the coordinator goes.
  ASSERT_TRUE(worker.AwaitAcknowledged(worker.Exited(gang, 1)));
  Stop();
  ASSERT_TRUE(worker.AwaitEnd());
  Start();
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
  const auto welcome = worker.Connect(address(), {RunningRank(gang, 0)});
  ASSERT_TRUE(welcome.has_value());
  EXPECT_EQ(welcome->stale_size(), 0);
  // The repeat of a step that was stored is dropped.
  worker.Step(gang, 1);
  worker.Step(gang, 2);
  worker.Checkpoint(gang, 2);
  worker.Exited(gang, 0);
  const v1::JobInfo info = AwaitState(id, v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(Report(id).progress().tokens(), 2 * 128);
}

TEST_F(CoordinatorFailureTest, WorkerThatStaysAwayAfterARestartIsLost) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  worker.StartGang();
  AwaitState(id, v1::JOB_STATE_RUNNING);
  Stop();
  Start();
  clock_.Advance(absl::Seconds(29));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
  clock_.Advance(absl::Seconds(2));
  EXPECT_EQ(AwaitState(id, v1::JOB_STATE_FAILED).cause(),
            v1::CAUSE_LOST_WORKER);
}

TEST_F(CoordinatorFailureTest, RankThatVanishedInAReconnectFailsTheJob) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  worker.StartGang();
  AwaitState(id, v1::JOB_STATE_RUNNING);
  worker.Disconnect();
  ASSERT_TRUE(worker.Connect(address()).has_value());
  clock_.Advance(absl::Seconds(6));
  EXPECT_THAT(AwaitState(id, v1::JOB_STATE_FAILED).reason(),
              HasSubstr("has not said how it ended"));
}

TEST_F(CoordinatorFailureTest, RanksThatNeverStartFailTheJob) {
  Stop();
  options_.workers.lease = absl::Hours(1);
  Start();
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  const auto prepare = worker.Await(v1::CoordinatorMessage::kPrepareGang);
  worker.Accept(prepare->prepare_gang().gang());
  ASSERT_TRUE(worker.Await(v1::CoordinatorMessage::kCommitGang).has_value());
  clock_.Advance(absl::Seconds(61));
  EXPECT_TRUE(worker.Await(v1::CoordinatorMessage::kStopGang).has_value());
  worker.Exited(prepare->prepare_gang().gang(), 0, v1::CAUSE_SIGNAL, "killed",
                true);
  EXPECT_THAT(AwaitState(id, v1::JOB_STATE_FAILED).reason(),
              HasSubstr("not started within 1m"));
}

}  // namespace
}  // namespace testing
}  // namespace lockstep
