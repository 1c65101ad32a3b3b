// How ranks and gangs end in a gang table, and what it says of it.
#include <csignal>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agent/gang_table_fixture.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::Gang;
using testing::GangTableFixture;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GangTableEndingTest : public GangTableFixture {};

TEST_F(GangTableEndingTest, EndIsReportedOnlyWhenTheSessionIsDrained) {
  StartTwo();
  table_.OnExit(Token(0), 7 << 8, "");
  EXPECT_THAT(Exits(), IsEmpty());
  table_.CloseSession(Token(0));
  ASSERT_EQ(Exits().size(), 1u);
  EXPECT_EQ(Exits()[0].exit_code(), 7);
}

TEST_F(GangTableEndingTest,
       SessionThatNeverEndsDelaysTheReportForTwoSecondsOnly) {
  StartTwo();
  table_.OnExit(Token(0), 7 << 8, "");
  AdvanceAndTick(absl::Seconds(2));
  EXPECT_EQ(Exits().size(), 1u);
}

TEST_F(GangTableEndingTest, DevicesAreFreeWhenAllRanksHaveEnded) {
  StartTwo();
  Finish(0);
  EXPECT_FALSE(table_.empty());
  Finish(1);
  EXPECT_TRUE(table_.empty());
  EXPECT_TRUE(Prepare(2, 2).accepted());
}

TEST_F(GangTableEndingTest, CrashOfOneRankAbortsTheOthersAsSecondary) {
  StartTwo();
  Exit(0, SIGSEGV);
  const auto control = control_[1]->Pop();
  ASSERT_TRUE(control.has_value());
  EXPECT_THAT(control->abort(), AllOf(HasSubstr("rank 0 ended"),
                                      HasSubstr("Segmentation fault")));
  Exit(1, 3 << 8);
  ASSERT_EQ(Exits().size(), 2u);
  EXPECT_EQ(Exits()[0].cause(), v1::CAUSE_SIGNAL);
  EXPECT_FALSE(Exits()[0].secondary());
  EXPECT_TRUE(Exits()[1].secondary());
}

TEST_F(GangTableEndingTest, AbortedRankThatStaysIsKilledAfterTwoSeconds) {
  StartTwo();
  Exit(0, SIGSEGV);
  AdvanceAndTick(absl::Milliseconds(1900));
  EXPECT_THAT(world_.processes[1]->signals, IsEmpty());
  AdvanceAndTick(absl::Milliseconds(100));
  EXPECT_THAT(world_.processes[1]->signals, ElementsAre(SIGKILL));
}

TEST_F(GangTableEndingTest,
       RankThatDiedByItselfIsPrimaryThoughAPeerNoticedFirst) {
  StartTwo();
  // Rank 0 is dead; rank 1 sees the broken connection before we see the end.
  world_.processes[0]->state = 'Z';
  v1::RankMessage message;
  message.mutable_failure()->set_cause(v1::CAUSE_EXIT);
  message.mutable_failure()->set_secondary(true);
  message.mutable_failure()->set_message("rank 0 is gone");
  table_.OnRankMessage(Token(1), message);
  Exit(1, 1 << 8);
  Exit(0, SIGKILL);
  ASSERT_EQ(Exits().size(), 2u);
  EXPECT_TRUE(Exits()[0].secondary());
  EXPECT_EQ(Exits()[1].rank(), 0);
  EXPECT_FALSE(Exits()[1].secondary());
}

TEST_F(GangTableEndingTest, OomKillIsToldFromASignalByTheCounter) {
  StartTwo();
  world_.oom_kills = 1;
  Exit(0, SIGKILL);
  EXPECT_EQ(Exits()[0].cause(), v1::CAUSE_OOM_KILL);
}

TEST_F(GangTableEndingTest, StopIsSigtermThenSigkillAfterTheGrace) {
  StartTwo();
  v1::StopGang stop;
  *stop.mutable_gang() = Gang(1);
  stop.set_reason("cancelled");
  stop.mutable_grace()->set_seconds(4);
  table_.Stop(stop);
  EXPECT_THAT(world_.processes[0]->signals, ElementsAre(SIGTERM, SIGCONT));
  Exit(0, SIGTERM);
  AdvanceAndTick(absl::Seconds(4));
  EXPECT_THAT(world_.processes[1]->signals,
              ElementsAre(SIGTERM, SIGCONT, SIGKILL));
  Exit(1, SIGKILL);
  ASSERT_EQ(Exits().size(), 2u);
  EXPECT_TRUE(Exits()[0].secondary());
  EXPECT_TRUE(Exits()[1].secondary());
  EXPECT_EQ(Exits()[0].message(), "stopped: cancelled");
}

TEST_F(GangTableEndingTest, StopDropsAReservation) {
  ASSERT_TRUE(Prepare(1, 2).accepted());
  v1::StopGang stop;
  *stop.mutable_gang() = Gang(1);
  table_.Stop(stop);
  EXPECT_TRUE(table_.empty());
}

TEST_F(GangTableEndingTest, StaleGangOfTheWelcomeIsKilled) {
  StartTwo();
  v1::Welcome welcome;
  *welcome.add_stale() = Gang(1);
  table_.KillStale(welcome);
  EXPECT_THAT(world_.processes[0]->signals, ElementsAre(SIGKILL));
  EXPECT_THAT(world_.processes[1]->signals, ElementsAre(SIGKILL));
}

TEST_F(GangTableEndingTest, NewGenerationKillsTheOldOne) {
  StartTwo();
  EXPECT_FALSE(Prepare(2, 2).accepted());
  EXPECT_THAT(world_.processes[0]->signals, ElementsAre(SIGKILL));
  Exit(0, SIGKILL);
  Exit(1, SIGKILL);
  EXPECT_TRUE(Prepare(2, 2).accepted());
}

TEST_F(GangTableEndingTest, RankThatCannotBeStartedFailsTheGang) {
  ASSERT_TRUE(Prepare(1, 2).accepted());
  world_.start_error = absl::NotFoundError("can't run lockstep-rank");
  world_.sent.clear();
  Commit(1);
  ASSERT_EQ(Exits().size(), 2u);
  EXPECT_EQ(Exits()[0].cause(), v1::CAUSE_INTERNAL);
  EXPECT_THAT(Exits()[0].message(), HasSubstr("can't run"));
  EXPECT_TRUE(table_.empty());
}

TEST_F(GangTableEndingTest, ShutDownLosesTheWorkerAndTakesNoNewGang) {
  StartTwo();
  table_.ShutDown("worker host-a shut down: SIGTERM", absl::Seconds(5));
  EXPECT_THAT(world_.processes[0]->signals, ElementsAre(SIGTERM, SIGCONT));
  Exit(0, SIGTERM);
  Exit(1, SIGTERM);
  ASSERT_EQ(Exits().size(), 2u);
  EXPECT_EQ(Exits()[0].cause(), v1::CAUSE_LOST_WORKER);
  EXPECT_FALSE(Exits()[0].secondary());
  const v1::GangPrepared prepared = Prepare(2, 2);
  EXPECT_FALSE(prepared.accepted());
  EXPECT_THAT(prepared.reason(), HasSubstr("shutting down"));
}

}  // namespace
}  // namespace lockstep
