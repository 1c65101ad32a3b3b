// The coordinator from submit to report, over gRPC with a worker that only
// pretends.
#include "coordinator/coordinator.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "tests/unit/coordinator/coordinator_fixture.h"

namespace lockstep {
namespace testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class CoordinatorTest : public CoordinatorFixture {};

TEST_F(CoordinatorTest, JobRunsFromSubmitToReport) {
  FakeWorker worker("w0", "i1", 2);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(2);
  const v1::PrepareGang prepare = worker.StartGang();
  ASSERT_EQ(prepare.ranks_size(), 2);
  EXPECT_EQ(prepare.ranks(0).world_size(), 2);
  EXPECT_EQ(prepare.ranks(1).data_share_index(), 1);
  EXPECT_EQ(prepare.ranks(0).memory_limit_bytes(), 1u << 30);
  EXPECT_GT(prepare.ranks(0).predicted_peak_bytes(), 0u);
  EXPECT_GE(prepare.ranks(0).rendezvous_secret().size(), 26u);
  EXPECT_EQ(prepare.ranks(0).spec().model().kv_heads(), 2);
  const v1::GangId gang = prepare.gang();
  AwaitState(id, v1::JOB_STATE_RUNNING);

  v1::RankReport facts;
  facts.mutable_facts()->set_steps(10);
  worker.Report(gang, 0, facts);
  for (int step = 1; step <= 10; ++step) worker.Step(gang, step, 3.0 / step);
  v1::RankReport evaluation;
  evaluation.mutable_evaluation()->set_step(10);
  evaluation.mutable_evaluation()->set_loss(0.4);
  evaluation.mutable_evaluation()->set_bits_per_byte(1.5);
  worker.Report(gang, 0, evaluation);
  v1::RankReport memory;
  memory.mutable_memory()->set_peak_bytes(5000);
  worker.Report(gang, 1, memory);
  worker.Checkpoint(gang, 10);
  const auto committed =
      worker.Await(v1::CoordinatorMessage::kCheckpointCommitted);
  ASSERT_TRUE(committed.has_value());
  EXPECT_EQ(committed->checkpoint_committed().step(), 10);
  worker.Exited(gang, 0);
  const int64_t last = worker.Exited(gang, 1);
  EXPECT_TRUE(worker.AwaitAcknowledged(last));

  const v1::JobInfo info = AwaitState(id, v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(info.step(), 10);
  const v1::JobReport report = Report(id);
  EXPECT_EQ(report.job().state(), "SUCCEEDED");
  EXPECT_EQ(report.layout().dp(), 2);
  EXPECT_EQ(report.progress().step(), 10);
  EXPECT_EQ(report.progress().tokens(), 1280);
  EXPECT_DOUBLE_EQ(report.metrics().train_loss(), 0.3);
  EXPECT_DOUBLE_EQ(report.metrics().validation_bits_per_byte(), 1.5);
  EXPECT_DOUBLE_EQ(report.speed().tokens_per_second(), 256);
  ASSERT_EQ(report.memory_size(), 1);
  EXPECT_EQ(report.memory(0).rank(), 1);
  EXPECT_EQ(report.memory(0).peak_bytes(), 5000u);
  EXPECT_EQ(report.memory(0).predicted_peak_bytes(),
            prepare.ranks(0).predicted_peak_bytes());
  EXPECT_EQ(report.checkpoint().step(), 10);
  EXPECT_EQ(report.checkpoint().path(),
            dir_.File("jobs/" + id + "/step-10.g1"));
  ASSERT_EQ(report.attempts_size(), 1);
  EXPECT_EQ(report.attempts(0).outcome(), "succeeded");
  EXPECT_THAT(EventTypes(id), ElementsAre("submitted", "starting", "running",
                                          "checkpoint", "succeeded"));
  EXPECT_TRUE(AwaitFreeDevices(2));
}

TEST_F(CoordinatorTest, GangOfTwoWorkersStartsOnlyWhenBothAgree) {
  FakeWorker a("a", "i1", 1);
  FakeWorker b("b", "i1", 1);
  ASSERT_TRUE(a.Connect(address()).has_value());
  ASSERT_TRUE(b.Connect(address()).has_value());
  const std::string id = Submit(2);
  const auto first = a.Await(v1::CoordinatorMessage::kPrepareGang);
  const auto second = b.Await(v1::CoordinatorMessage::kPrepareGang);
  ASSERT_TRUE(first.has_value() && second.has_value());
  a.Accept(first->prepare_gang().gang());
  b.Refuse(second->prepare_gang().gang(), "disk is full");
  // Both drop their part.
  EXPECT_TRUE(a.Await(v1::CoordinatorMessage::kStopGang).has_value());
  EXPECT_TRUE(b.Await(v1::CoordinatorMessage::kStopGang).has_value());
  EXPECT_FALSE(a.Has(v1::CoordinatorMessage::kCommitGang));
  EXPECT_THAT(AwaitReason(id, "refused"),
              HasSubstr("worker b refused: disk is full"));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_PENDING);
  EXPECT_TRUE(AwaitFreeDevices(2));
  // It is tried again, with a generation of its own.
  clock_.Advance(absl::Seconds(2));
  const auto again = a.Await(v1::CoordinatorMessage::kPrepareGang);
  ASSERT_TRUE(again.has_value());
  EXPECT_GT(again->prepare_gang().gang().generation(),
            first->prepare_gang().gang().generation());
}

TEST_F(CoordinatorTest, SilentWorkerCancelsTheReservation) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  ASSERT_TRUE(worker.Await(v1::CoordinatorMessage::kPrepareGang).has_value());
  clock_.Advance(absl::Seconds(9));
  // It lives, but doesn't answer.
  v1::WorkerMessage heartbeat;
  heartbeat.mutable_heartbeat();
  worker.Send(heartbeat);
  ASSERT_TRUE(AwaitWorkerState("w0", "READY"));
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(worker.Await(v1::CoordinatorMessage::kStopGang).has_value());
  EXPECT_THAT(AwaitReason(id, "no answer"), HasSubstr("worker w0"));
}

TEST_F(CoordinatorTest, PendingJobSaysWhyAndStartsWhenItCan) {
  const std::string id = Submit(1);
  EXPECT_EQ(AwaitReason(id, "no workers"),
            "needs 1 device, there are no workers");
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  worker.StartGang();
  AwaitState(id, v1::JOB_STATE_RUNNING);
  const std::string second = Submit(1);
  EXPECT_EQ(AwaitReason(second, "waiting for job"),
            "needs 1 device, 0 are free of 1; waiting for job " + id);
}

TEST_F(CoordinatorTest, RepeatedSubmitGivesTheSameJobAlsoAfterARestart) {
  v1::SubmitRequest request;
  request.set_request_id("once");
  *request.mutable_spec() = TestSpec();
  v1::SubmitResponse first;
  v1::SubmitResponse second;
  v1::SubmitResponse third;
  ASSERT_TRUE(TrySubmit(request, &first).ok());
  ASSERT_TRUE(TrySubmit(request, &second).ok());
  Stop();
  Start();
  ASSERT_TRUE(TrySubmit(request, &third).ok());
  EXPECT_EQ(first.job_id(), second.job_id());
  EXPECT_EQ(first.job_id(), third.job_id());
}

TEST_F(CoordinatorTest, FirstFailureIsNamedAndTheRestIsStoppedAtOnce) {
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

TEST_F(CoordinatorTest, LostWorkerFailsItsJobAndStopsTheOthers) {
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
  EXPECT_EQ(report.attempts(0).cause(), "lost_worker");
  EXPECT_EQ(report.attempts(0).worker(), "b");
  EXPECT_EQ(report.attempts(0).first_rank(), 1);
}

TEST_F(CoordinatorTest, SilentWorkerIsLostWhenItsLeaseEnds) {
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

TEST_F(CoordinatorTest, RestartedWorkerLosesItsOldRanksAtOnce) {
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

TEST_F(CoordinatorTest, ReconnectedWorkerIsAdoptedAndNothingIsLost) {
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

TEST_F(CoordinatorTest, RanksOfAnUnknownGangAreStale) {
  FakeWorker worker("w0", "i1", 1);
  v1::GangId gang;
  gang.set_job("gone-1234");
  gang.set_generation(7);
  const auto welcome = worker.Connect(address(), {RunningRank(gang, 0)});
  ASSERT_TRUE(welcome.has_value());
  ASSERT_EQ(welcome->stale_size(), 1);
  EXPECT_EQ(welcome->stale(0).job(), "gone-1234");
}

TEST_F(CoordinatorTest, RestartedCoordinatorAdoptsRunningRanks) {
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

TEST_F(CoordinatorTest, WorkerThatStaysAwayAfterARestartIsLost) {
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

TEST_F(CoordinatorTest, RankThatVanishedInAReconnectFailsTheJob) {
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

TEST_F(CoordinatorTest, RanksThatNeverStartFailTheJob) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  const auto prepare = worker.Await(v1::CoordinatorMessage::kPrepareGang);
  worker.Accept(prepare->prepare_gang().gang());
  ASSERT_TRUE(worker.Await(v1::CoordinatorMessage::kCommitGang).has_value());
  options_.workers.lease = absl::Hours(1);
  for (int i = 0; i < 61; ++i) {
    v1::WorkerMessage heartbeat;
    heartbeat.mutable_heartbeat();
    worker.Send(heartbeat);
    ASSERT_TRUE(AwaitWorkerState("w0", "READY"));
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_TRUE(worker.Await(v1::CoordinatorMessage::kStopGang).has_value());
  worker.Exited(prepare->prepare_gang().gang(), 0, v1::CAUSE_SIGNAL, "killed",
                true);
  EXPECT_THAT(AwaitState(id, v1::JOB_STATE_FAILED).reason(),
              HasSubstr("not started within 1m"));
}

TEST_F(CoordinatorTest, OldCheckpointsAreForgottenAndDeleted) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  const v1::GangId gang = worker.StartGang().gang();
  for (int step = 1; step <= 4; ++step) {
    dir_.Write("jobs/" + id + "/step-" + std::to_string(step) + ".g1/shard",
               "x");
    worker.Step(gang, step);
    worker.Checkpoint(gang, step);
    ASSERT_TRUE(
        worker.Await(v1::CoordinatorMessage::kCheckpointCommitted).has_value());
  }
  // Written, but never reported: no checkpoint.
  dir_.Write("jobs/" + id + "/.step-5.g1.tmp/shard", "x");
  worker.Exited(gang, 0);
  AwaitState(id, v1::JOB_STATE_SUCCEEDED);
  const auto checkpoints = Checkpoints(id);
  ASSERT_THAT(checkpoints, SizeIs(2));
  EXPECT_EQ(checkpoints[0].step(), 4);
  EXPECT_EQ(checkpoints[1].step(), 3);
  Stop();  // ends the deleting too
  EXPECT_TRUE(std::filesystem::exists(checkpoints[0].path() + "/shard"));
  EXPECT_TRUE(std::filesystem::exists(checkpoints[1].path()));
  EXPECT_FALSE(std::filesystem::exists(dir_.File("jobs/" + id + "/step-1.g1")));
  EXPECT_FALSE(std::filesystem::exists(dir_.File("jobs/" + id + "/step-2.g1")));
  EXPECT_FALSE(
      std::filesystem::exists(dir_.File("jobs/" + id + "/.step-5.g1.tmp")));
}

TEST_F(CoordinatorTest, CheckpointOfAnotherNameDoesNotCount) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  const v1::GangId gang = worker.StartGang().gang();
  worker.Step(gang, 5);
  v1::RankReport report;
  report.mutable_checkpoint()->set_step(5);
  report.mutable_checkpoint()->set_path("/etc");
  ASSERT_TRUE(worker.AwaitAcknowledged(worker.Report(gang, 0, report)));
  EXPECT_THAT(Checkpoints(id), SizeIs(0));
  worker.Exited(gang, 0);
  EXPECT_THAT(AwaitState(id, v1::JOB_STATE_FAILED).reason(),
              HasSubstr("without a committed checkpoint"));
}

TEST_F(CoordinatorTest, ReportsOfAnOldGenerationAreDropped) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  v1::GangId gang = worker.StartGang().gang();
  const v1::GangId newest = gang;
  gang.set_generation(gang.generation() - 1);
  worker.Step(gang, 1);
  worker.Checkpoint(gang, 1);
  ASSERT_TRUE(worker.AwaitAcknowledged(worker.Exited(gang, 0)));
  EXPECT_EQ(Job(id).step(), 0);
  EXPECT_THAT(Checkpoints(id), SizeIs(0));
  ASSERT_TRUE(worker.AwaitAcknowledged(worker.Step(newest, 1)));
  EXPECT_EQ(Job(id).step(), 1);
}

TEST_F(CoordinatorTest, WatchResumesWithoutGapOrRepeatAcrossARestart) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  const v1::GangId gang = worker.StartGang().gang();
  for (int step = 1; step <= 3; ++step) worker.Step(gang, step);
  const auto before = WatchUntil(id, 0, [](const v1::JobUpdate& update) {
    return update.has_step() && update.step().step() == 2;
  });
  Stop();
  ASSERT_TRUE(worker.AwaitEnd());
  Start();
  ASSERT_TRUE(worker.Connect(address(), {RunningRank(gang, 0)}).has_value());
  worker.Step(gang, 3);
  worker.Step(gang, 4);
  worker.Checkpoint(gang, 4);
  worker.Exited(gang, 0);
  const int64_t after = before.back().sequence();
  const auto rest =
      WatchUntil(id, after, [](const v1::JobUpdate&) { return false; });
  std::vector<int64_t> steps;
  int64_t sequence = after;
  for (const v1::JobUpdate& update : rest) {
    if (update.has_progress()) continue;
    EXPECT_EQ(update.sequence(), ++sequence);
    if (update.has_step()) steps.push_back(update.step().step());
  }
  EXPECT_THAT(steps, ElementsAre(3, 4));
  EXPECT_EQ(rest.back().job().state(), v1::JOB_STATE_SUCCEEDED);
}

TEST_F(CoordinatorTest, WatchOfAnEndedJobEndsAtOnce) {
  const std::string id = Submit(1);
  ASSERT_TRUE(Cancel(id).ok());
  const auto all = WatchUntil(id, 0, [](const auto&) { return false; });
  EXPECT_EQ(all.back().job().state(), v1::JOB_STATE_CANCELLED);
  const auto none =
      WatchUntil(id, all.back().sequence(), [](const auto&) { return false; });
  ASSERT_THAT(none, SizeIs(1));
  EXPECT_EQ(none[0].job().state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(CoordinatorTest, HeartbeatsCarryProgressToWatchers) {
  FakeWorker worker("w0", "i1", 2);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(2);
  const v1::GangId gang = worker.StartGang().gang();
  v1::WorkerMessage message;
  for (int rank = 0; rank < 2; ++rank) {
    v1::Heartbeat::RankProgress& progress =
        *message.mutable_heartbeat()->add_ranks();
    *progress.mutable_gang() = gang;
    progress.set_rank(rank);
    progress.mutable_progress()->set_phase(rank == 0 ? "tokenizing" : "waits");
    progress.mutable_progress()->set_memory_bytes(100 + rank);
  }
  worker.Send(message);
  const auto updates = WatchUntil(
      id, 0, [](const v1::JobUpdate& update) { return update.has_progress(); });
  EXPECT_EQ(updates.back().progress().phase(), "tokenizing");
  EXPECT_EQ(updates.back().progress().memory_bytes(), 101u);
}

TEST_F(CoordinatorTest, CancelledPendingJobEndsAtOnce) {
  const std::string id = Submit(1);
  v1::JobInfo info;
  ASSERT_TRUE(Cancel(id, &info).ok());
  EXPECT_EQ(info.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(info.reason(), "cancelled by user");
  // Again changes nothing.
  ASSERT_TRUE(Cancel(id, &info).ok());
  EXPECT_EQ(info.state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(CoordinatorTest, CancelledReservationIsDropped) {
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

TEST_F(CoordinatorTest, CancelledStartingJobIsStoppedWithGrace) {
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

TEST_F(CoordinatorTest, CancelledRunningJobEndsCancelled) {
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

TEST_F(CoordinatorTest, AcknowledgedCancelSurvivesARestart) {
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

TEST_F(CoordinatorTest, RankThatWillNotEndKeepsItsDeviceButNotTheJob) {
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
