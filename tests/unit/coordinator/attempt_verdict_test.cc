#include "coordinator/recovery/attempt_verdict.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

v1::RankExited Exit(int64_t rank, v1::Cause cause, const std::string& message,
                    bool secondary = false) {
  v1::RankExited exit;
  exit.set_rank(rank);
  exit.set_cause(cause);
  exit.set_message(message);
  exit.set_secondary(secondary);
  return exit;
}

TEST(AttemptVerdictTest, CleanExitIsNoFailure) {
  AttemptVerdict verdict;
  v1::RankExited exit;
  exit.set_exit_code(0);
  EXPECT_FALSE(verdict.NoteExit(exit, "w0"));
  EXPECT_FALSE(verdict.failed());
}

TEST(AttemptVerdictTest, FirstPrimaryFailureIsToBlame) {
  AttemptVerdict verdict;
  EXPECT_TRUE(verdict.NoteExit(Exit(1, v1::CAUSE_OUT_OF_MEMORY, "oom"), "w1"));
  EXPECT_FALSE(verdict.NoteExit(Exit(0, v1::CAUSE_EXIT, "later"), "w0"));
  EXPECT_EQ(verdict.failure().cause, v1::CAUSE_OUT_OF_MEMORY);
  EXPECT_EQ(verdict.failure().rank, 1);
  EXPECT_EQ(verdict.failure().worker, "w1");
}

TEST(AttemptVerdictTest, RankThatOnlyNoticedIsNeverFirst) {
  AttemptVerdict verdict;
  EXPECT_FALSE(verdict.NoteExit(
      Exit(0, v1::CAUSE_EXIT, "connection closed by peer", true), "w0"));
  EXPECT_TRUE(verdict.failed());
  EXPECT_TRUE(verdict.NoteExit(Exit(1, v1::CAUSE_SIGNAL, "signal 9"), "w1"));
  EXPECT_EQ(verdict.failure().rank, 1);
}

TEST(AttemptVerdictTest, WithoutACauseWhatWasNoticedIsTold) {
  AttemptVerdict verdict;
  verdict.NoteExit(Exit(0, v1::CAUSE_EXIT, "peer is gone", true), "w0");
  EXPECT_EQ(verdict.failure().cause, v1::CAUSE_EXIT);
  EXPECT_THAT(
      verdict.failure().message,
      AllOf(HasSubstr("no rank gave a cause"), HasSubstr("peer is gone")));
}

TEST(AttemptVerdictTest, LostWorkerIsACause) {
  AttemptVerdict verdict;
  EXPECT_TRUE(verdict.NoteLostWorker("w1", 2, "nothing was heard of it"));
  EXPECT_EQ(verdict.failure().cause, v1::CAUSE_LOST_WORKER);
  EXPECT_EQ(verdict.failure().rank, 2);
}

TEST(AttemptVerdictTest, CauseIsMadeUpOnlyFromWhatIsKnown) {
  AttemptVerdict by_signal;
  v1::RankExited exit;
  exit.set_signal(11);
  by_signal.NoteExit(exit, "w0");
  EXPECT_EQ(by_signal.failure().cause, v1::CAUSE_SIGNAL);
  EXPECT_EQ(by_signal.failure().message, "ended by signal 11");
  AttemptVerdict by_code;
  v1::RankExited code;
  code.set_exit_code(3);
  by_code.NoteExit(code, "w0");
  EXPECT_EQ(by_code.failure().cause, v1::CAUSE_EXIT);
  EXPECT_EQ(by_code.failure().message, "exited with code 3");
}

}  // namespace
}  // namespace lockstep
