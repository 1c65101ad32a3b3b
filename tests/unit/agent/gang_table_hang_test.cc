// Ranks that hang, as a gang table sees them.
#include <csignal>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agent/gang_table_fixture.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using testing::GangTableFixture;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GangTableHangTest : public GangTableFixture {};

TEST_F(GangTableHangTest, SilentRankIsKilledAtItsLimitAndNamed) {
  StartTwo();
  for (int step = 1; step <= 5; ++step) {
    clock_.Advance(absl::Seconds(1));
    Progress(0, step);
    Progress(1, step);
  }
  // Rank 0 goes on a little: rank 1 is the one that hangs.
  AdvanceAndTick(absl::Seconds(3));
  Progress(0, 6);
  AdvanceAndTick(absl::Seconds(12));
  EXPECT_THAT(world_.processes[1]->signals, IsEmpty());
  AdvanceAndTick(absl::Milliseconds(100));
  EXPECT_THAT(world_.processes[1]->signals, ElementsAre(SIGKILL));
  EXPECT_THAT(world_.processes[0]->signals, IsEmpty());
  Exit(1, SIGKILL);
  ASSERT_EQ(Exits().size(), 1u);
  EXPECT_EQ(Exits()[0].cause(), v1::CAUSE_HANG);
  EXPECT_FALSE(Exits()[0].secondary());
  EXPECT_THAT(Exits()[0].message(),
              HasSubstr("no progress for 15.1s (limit 15s) in step 5, "
                        "training"));
}

TEST_F(GangTableHangTest, StoppedRankIsNamedInSecondsThoughAllAreSilent) {
  StartTwo();
  for (int step = 1; step <= 5; ++step) {
    clock_.Advance(absl::Seconds(1));
    Progress(1, step);
    Progress(0, step);
  }
  world_.processes[1]->state = 'T';
  AdvanceAndTick(absl::Milliseconds(4900));
  EXPECT_THAT(world_.processes[1]->signals, IsEmpty());
  AdvanceAndTick(absl::Milliseconds(100));
  EXPECT_THAT(world_.processes[1]->signals, ElementsAre(SIGKILL));
  Exit(1, SIGKILL);
  EXPECT_THAT(Exits()[0].message(), HasSubstr("stopped (SIGSTOP)"));
}

TEST_F(GangTableHangTest, HangTimeoutOfTheJobReplacesTheDefault) {
  ASSERT_TRUE(Prepare(1, 1, absl::Seconds(40)).accepted());
  Commit(1);
  for (int step = 1; step <= 5; ++step) {
    clock_.Advance(absl::Seconds(1));
    Progress(0, step);
  }
  AdvanceAndTick(absl::Seconds(40));
  EXPECT_THAT(world_.processes[0]->signals, IsEmpty());
  AdvanceAndTick(absl::Seconds(1));
  EXPECT_THAT(world_.processes[0]->signals, ElementsAre(SIGKILL));
}

TEST_F(GangTableHangTest, RankThatSavesHasTwoMinutesWhateverItsStepsTake) {
  ASSERT_TRUE(Prepare(1, 1).accepted());
  Commit(1);
  for (int step = 1; step <= 5; ++step) {
    clock_.Advance(absl::Seconds(1));
    Progress(0, step);
  }
  v1::RankMessage saving;
  saving.set_step(5);
  saving.mutable_progress()->set_phase("saving");
  table_.OnRankMessage(Token(0), saving);
  AdvanceAndTick(absl::Seconds(120));
  EXPECT_THAT(world_.processes[0]->signals, IsEmpty());
  AdvanceAndTick(absl::Seconds(1));
  EXPECT_THAT(world_.processes[0]->signals, ElementsAre(SIGKILL));
  Exit(0, SIGKILL);
  EXPECT_THAT(Exits()[0].message(), HasSubstr("(limit 2m) in step 5, saving"));
}

TEST_F(GangTableHangTest, RankThatNeverReportsHangsAfterTwoMinutes) {
  ASSERT_TRUE(Prepare(1, 1).accepted());
  Commit(1);
  AdvanceAndTick(absl::Seconds(120));
  EXPECT_THAT(world_.processes[0]->signals, IsEmpty());
  AdvanceAndTick(absl::Seconds(1));
  Exit(0, SIGKILL);
  EXPECT_EQ(Exits()[0].cause(), v1::CAUSE_HANG);
  EXPECT_THAT(Exits()[0].message(), HasSubstr("while it started"));
}

}  // namespace
}  // namespace lockstep
