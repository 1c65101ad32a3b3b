#include "worker/agent/gang_table.h"

#include <csignal>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/agent/gang_table_fixture.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using testing::Gang;
using testing::GangTableFixture;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::StatusIs;

class GangTableTest : public GangTableFixture {};

TEST_F(GangTableTest, AssignmentIsCompletedByTheWorker) {
  ASSERT_TRUE(Prepare(1, 2).accepted());
  Commit(1);
  ASSERT_OK_AND_ASSIGN(const v1::RankAssignment assignment,
                       table_.Assignment(Token(1)));
  EXPECT_EQ(assignment.device(), "cpu:1");
  EXPECT_EQ(assignment.threads(), 4);  // 8 cores, 2 devices
  EXPECT_EQ(assignment.job_dir(), "/jobs/kjv-1a2b");
  EXPECT_EQ(assignment.cache_dir(), "/jobs/cache");
  EXPECT_EQ(assignment.data_root(), "/data");
  EXPECT_EQ(assignment.worker(), "host-a");
}

TEST_F(GangTableTest, ThreadsAreSharedWithTheGangsOtherRanksOnTheHost) {
  v1::PrepareGang prepare;
  *prepare.mutable_gang() = Gang(1);
  v1::RankAssignment& assignment = *prepare.add_ranks();
  *assignment.mutable_gang() = Gang(1);
  for (int rank = 0; rank < 8; ++rank) assignment.add_host_ranks(rank);
  table_.Prepare(prepare);
  Commit(1);
  EXPECT_EQ(world_.processes.at(0)->assignment.threads(), 1);
}

TEST_F(GangTableTest, DevicesAreReservedAllOrNone) {
  ASSERT_TRUE(Prepare(1, 1).accepted());
  v1::PrepareGang other;
  other.mutable_gang()->set_job("other");
  other.mutable_gang()->set_generation(1);
  other.add_ranks()->set_device("cpu:1");
  other.add_ranks()->set_device("cpu:0");
  table_.Prepare(other);
  EXPECT_FALSE(world_.sent.back().gang_prepared().accepted());
  EXPECT_THAT(world_.sent.back().gang_prepared().reason(),
              HasSubstr("cpu:0 is not free on worker host-a"));
  // cpu:1 was not kept.
  other.mutable_ranks()->RemoveLast();
  table_.Prepare(other);
  EXPECT_TRUE(world_.sent.back().gang_prepared().accepted());
}

TEST_F(GangTableTest, StaleGenerationIsRefused) {
  ASSERT_TRUE(Prepare(2, 1).accepted());
  const v1::GangPrepared prepared = Prepare(1, 1);
  EXPECT_FALSE(prepared.accepted());
  EXPECT_THAT(prepared.reason(), HasSubstr("the newest is 2"));
}

TEST_F(GangTableTest, JobIdThatIsNoFolderNameIsRefused) {
  for (const std::string job : {"", "../up", "a/b", ".hidden"}) {
    v1::PrepareGang prepare;
    prepare.mutable_gang()->set_job(job);
    prepare.mutable_gang()->set_generation(1);
    prepare.add_ranks();
    table_.Prepare(prepare);
    EXPECT_FALSE(world_.sent.back().gang_prepared().accepted()) << job;
  }
}

TEST_F(GangTableTest, ReservationThatIsNotCommittedExpires) {
  ASSERT_TRUE(Prepare(1, 2).accepted());
  AdvanceAndTick(absl::Seconds(59));
  EXPECT_FALSE(table_.empty());
  AdvanceAndTick(absl::Seconds(1));
  EXPECT_TRUE(table_.empty());
  Commit(1);
  EXPECT_FALSE(world_.sent.back().gang_prepared().accepted());
}

TEST_F(GangTableTest, UnknownTokenIsRefused) {
  StartTwo();
  EXPECT_THAT(table_.Assignment("wrong"),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(table_.OpenSession("", nullptr),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(table_.OpenSession(Token(0), nullptr),
              StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(GangTableTest, ReportsGoOnWithGangAndRankAndBeforeTheEnd) {
  StartTwo();
  v1::RankMessage message;
  message.mutable_report()->mutable_step()->set_step(3);
  message.mutable_report()->set_rank(77);  // not the rank's to say
  table_.OnRankMessage(Token(1), message);
  Finish(1);
  ASSERT_EQ(world_.sent.size(), 2u);
  EXPECT_EQ(world_.sent[0].rank_report().rank(), 1);
  EXPECT_EQ(world_.sent[0].rank_report().gang().job(), "kjv-1a2b");
  EXPECT_EQ(world_.sent[1].rank_exited().cause(), v1::CAUSE_UNSPECIFIED);
}

TEST_F(GangTableTest, CommittedCheckpointIsToldToTheGangsRanks) {
  StartTwo();
  v1::CheckpointCommitted committed;
  *committed.mutable_gang() = Gang(1);
  committed.set_step(100);
  table_.CheckpointCommitted(committed);
  EXPECT_EQ(control_[0]->Pop()->checkpoint_committed().step(), 100);
  EXPECT_EQ(control_[1]->Pop()->checkpoint_committed().step(), 100);
}

TEST_F(GangTableTest, HeartbeatAndHelloTellOfRunningRanks) {
  StartTwo();
  Progress(1, 9);
  const v1::Heartbeat heartbeat = table_.MakeHeartbeat();
  ASSERT_EQ(heartbeat.ranks_size(), 2);
  EXPECT_EQ(heartbeat.ranks(1).step(), 9);
  EXPECT_EQ(heartbeat.ranks(1).progress().phase(), "training");
  ASSERT_EQ(table_.RunningRanks().size(), 2u);
  EXPECT_EQ(table_.RunningRanks()[1].device(), "cpu:1");
}

TEST_F(GangTableTest, MetricsCountDevicesRanksAndExits) {
  StartTwo();
  Progress(0, 4);
  table_.UpdateMetrics();
  EXPECT_THAT(
      metrics_.Text(),
      AllOf(HasSubstr("lockstep_worker_devices{state=\"busy\"} 2"),
            HasSubstr("lockstep_worker_ranks_running 2"),
            HasSubstr("lockstep_worker_rank_step{job=\"kjv-1a2b\",rank=\"0\"} "
                      "4")));
  Exit(0, SIGSEGV);
  Exit(1, 3 << 8);
  table_.UpdateMetrics();
  EXPECT_THAT(
      metrics_.Text(),
      AllOf(HasSubstr("lockstep_worker_devices{state=\"free\"} 2"),
            HasSubstr("lockstep_worker_ranks_exited_total{cause=\"signal\"} 1"),
            Not(HasSubstr("rank=\"0\""))));
}

}  // namespace
}  // namespace lockstep
