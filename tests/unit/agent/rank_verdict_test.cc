#include "worker/agent/rank_verdict.h"

#include <csignal>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Wait statuses as Linux encodes them.
int Exited(int code) { return code << 8; }
int Signaled(int signal) { return signal; }

RankEnd End(int wait_status) {
  RankEnd end;
  end.wait_status = wait_status;
  end.where = "step 12, training";
  end.last_line = "the last line";
  return end;
}

TEST(RankVerdictTest, FinishedRankThatExitsWith0EndedWell) {
  RankEnd end = End(Exited(0));
  end.finished = true;
  const v1::RankExited exited = JudgeRankEnd(end);
  EXPECT_EQ(exited.cause(), v1::CAUSE_UNSPECIFIED);
  EXPECT_EQ(exited.exit_code(), 0);
  EXPECT_FALSE(exited.secondary());
}

TEST(RankVerdictTest, Exit0BeforeTheWorkIsDoneIsAFailure) {
  const v1::RankExited exited = JudgeRankEnd(End(Exited(0)));
  EXPECT_EQ(exited.cause(), v1::CAUSE_EXIT);
  EXPECT_THAT(exited.message(), HasSubstr("before its work was done"));
}

TEST(RankVerdictTest, ExitCodeIsNamedWithPlaceAndLastLine) {
  const v1::RankExited exited = JudgeRankEnd(End(Exited(7)));
  EXPECT_EQ(exited.cause(), v1::CAUSE_EXIT);
  EXPECT_EQ(exited.exit_code(), 7);
  EXPECT_THAT(exited.message(),
              AllOf(HasSubstr("exited with code 7 in step 12, training"),
                    HasSubstr("its log ends: the last line")));
}

TEST(RankVerdictTest, CrashIsASignalAlsoWhileTheGangIsBeingStopped) {
  RankEnd end = End(Signaled(SIGSEGV));
  end.stop_reason = "rank 1 failed";
  end.sent_term = true;
  const v1::RankExited exited = JudgeRankEnd(end);
  EXPECT_EQ(exited.cause(), v1::CAUSE_SIGNAL);
  EXPECT_EQ(exited.signal(), SIGSEGV);
  EXPECT_FALSE(exited.secondary());
  EXPECT_THAT(exited.message(), HasSubstr("signal 11 (Segmentation fault)"));
}

TEST(RankVerdictTest, OurOwnSignalsAreSecondary) {
  RankEnd end = End(Signaled(SIGTERM));
  end.stop_reason = "cancelled by user";
  end.sent_term = true;
  EXPECT_TRUE(JudgeRankEnd(end).secondary());
  EXPECT_EQ(JudgeRankEnd(end).message(), "stopped: cancelled by user");
  end.wait_status = Signaled(SIGKILL);
  EXPECT_FALSE(JudgeRankEnd(end).secondary());
  end.sent_kill = true;
  EXPECT_TRUE(JudgeRankEnd(end).secondary());
}

TEST(RankVerdictTest, SigkillWithARisenOomCountIsAnOomKill) {
  RankEnd end = End(Signaled(SIGKILL));
  EXPECT_EQ(JudgeRankEnd(end).cause(), v1::CAUSE_SIGNAL);
  end.oom_killed = true;
  EXPECT_EQ(JudgeRankEnd(end).cause(), v1::CAUSE_OOM_KILL);
  end.sent_kill = true;
  EXPECT_EQ(JudgeRankEnd(end).cause(), v1::CAUSE_SIGNAL);
}

TEST(RankVerdictTest, TheRanksOwnWordCounts) {
  RankEnd end = End(Exited(1));
  end.failure.emplace();
  end.failure->set_cause(v1::CAUSE_NAN_LOSS);
  end.failure->set_message("loss is NaN at step 12");
  v1::RankExited exited = JudgeRankEnd(end);
  EXPECT_EQ(exited.cause(), v1::CAUSE_NAN_LOSS);
  EXPECT_EQ(exited.message(), "loss is NaN at step 12");
  EXPECT_FALSE(exited.secondary());
  end.failed_after_stop = true;
  EXPECT_TRUE(JudgeRankEnd(end).secondary());
  end.failed_after_stop = false;
  end.failure->set_secondary(true);
  EXPECT_TRUE(JudgeRankEnd(end).secondary());
}

TEST(RankVerdictTest, HangIsNamedThoughWeSentTheSignal) {
  RankEnd end = End(Signaled(SIGKILL));
  end.sent_kill = true;
  end.hang = "no progress for 15s";
  const v1::RankExited exited = JudgeRankEnd(end);
  EXPECT_EQ(exited.cause(), v1::CAUSE_HANG);
  EXPECT_EQ(exited.message(), "no progress for 15s");
  EXPECT_FALSE(exited.secondary());
}

TEST(RankVerdictTest, ShutDownWorkerIsLostUnlessTheRankHadFinished) {
  RankEnd end = End(Signaled(SIGTERM));
  end.sent_term = true;
  end.shutdown = "worker a shut down: SIGTERM";
  end.stop_reason = end.shutdown;
  EXPECT_EQ(JudgeRankEnd(end).cause(), v1::CAUSE_LOST_WORKER);
  EXPECT_FALSE(JudgeRankEnd(end).secondary());
  end.finished = true;
  end.wait_status = Exited(0);
  EXPECT_EQ(JudgeRankEnd(end).cause(), v1::CAUSE_UNSPECIFIED);
}

TEST(RankVerdictTest, AbortedRankIsSecondaryOnlyIfItWasTold) {
  RankEnd end = End(Exited(3));
  EXPECT_EQ(JudgeRankEnd(end).cause(), v1::CAUSE_INTERNAL);
  EXPECT_FALSE(JudgeRankEnd(end).secondary());
  end.stop_reason = "rank 1 ended";
  EXPECT_TRUE(JudgeRankEnd(end).secondary());
}

}  // namespace
}  // namespace lockstep
