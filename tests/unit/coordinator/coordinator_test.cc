// The coordinator from submit to report, over gRPC with a worker that only
// pretends. See also coordinator_failure_test.cc and
// coordinator_cancel_test.cc.
#include "coordinator/coordinator.h"

#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/unit/coordinator/coordinator_fixture.h"

namespace lockstep {
namespace testing {
namespace {

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

}  // namespace
}  // namespace testing
}  // namespace lockstep
