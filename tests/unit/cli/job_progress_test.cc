#include "cli/job_progress.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "cli/progress_view.h"

namespace lockstep {
namespace {

v1::JobUpdate Job(v1::JobState state, const std::string& reason = "") {
  v1::JobUpdate update;
  update.mutable_job()->set_id("kjv-1");
  update.mutable_job()->set_name("kjv");
  update.mutable_job()->set_state(state);
  update.mutable_job()->set_reason(reason);
  update.mutable_job()->set_steps(400);
  return update;
}

v1::JobUpdate Step(int64_t step) {
  v1::JobUpdate update;
  update.mutable_step()->set_step(step);
  update.mutable_step()->set_loss(2.314);
  update.mutable_step()->set_tokens(4096);
  update.mutable_step()->set_seconds(0.25);
  return update;
}

v1::JobUpdate Phase(const std::string& phase, double fraction) {
  v1::JobUpdate update;
  update.mutable_progress()->set_phase(phase);
  update.mutable_progress()->set_fraction(fraction);
  update.mutable_progress()->set_memory_bytes(uint64_t{412} << 20);
  return update;
}

TEST(JobProgressTest, StepTextHasLossSpeedMemoryAndTimeLeft) {
  JobProgress progress;
  progress.Add(Job(v1::JOB_STATE_RUNNING));
  progress.Add(Phase("training", 0.0));
  progress.Add(Step(152));
  EXPECT_EQ(progress.StepText(),
            "step 152/400  loss 2.3140  16.4k tokens/s  412 MiB  eta 1m02s");
}

TEST(JobProgressTest, BarShowsTheShareDone) {
  JobProgress progress;
  progress.Add(Job(v1::JOB_STATE_RUNNING));
  progress.Add(Step(100));
  EXPECT_EQ(progress.BarLine(44),
            "[=====>              ]  25%  step 100/400  l");
  progress.Add(Step(400));
  EXPECT_EQ(progress.BarLine(27), "[====================] 100%");
}

TEST(JobProgressTest, PhasesShowTheirOwnShare) {
  JobProgress progress;
  progress.Add(Job(v1::JOB_STATE_RUNNING));
  progress.Add(Phase("tokenizing", 0.5));
  EXPECT_EQ(progress.BarLine(80), "[==========>         ]  50%  tokenizing");
}

TEST(JobProgressTest, WaitingShowsTheReason) {
  JobProgress progress;
  progress.Add(Job(v1::JOB_STATE_PENDING, "waits for 2 devices"));
  EXPECT_EQ(progress.BarLine(80), "kjv: PENDING, waits for 2 devices");
}

TEST(JobProgressTest, TextIsNotCutInsideACharacter) {
  JobProgress progress;
  progress.Add(Job(v1::JOB_STATE_PENDING, "\xc3\xa9\xc3\xa9"));
  // Fifteen bytes and one half of the first letter.
  EXPECT_EQ(progress.BarLine(15), "kjv: PENDING, ");
}

class ProgressViewTest : public ::testing::Test {
 protected:
  void Show(ProgressView& view, const v1::JobUpdate& update) {
    view.Show(update, now_);
  }
  std::ostringstream out_;
  std::ostringstream err_;
  Console console_ = {.out = out_, .err = err_};
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(ProgressViewTest, PlainLinesComeEveryTenthOrFiveSeconds) {
  ProgressView view(console_, ProgressView::Detail::kAll);
  Show(view, Job(v1::JOB_STATE_RUNNING));
  for (int step = 1; step <= 400; ++step) Show(view, Step(step));
  // The first one, then each tenth.
  std::string text = err_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 1 + 10);
  err_.str("");
  now_ += absl::Seconds(5);
  Show(view, Step(400));
  EXPECT_NE(err_.str(), "");
}

TEST_F(ProgressViewTest, EvaluationsAndWarningsAreAlwaysShown) {
  ProgressView view(console_, ProgressView::Detail::kAll);
  v1::JobUpdate evaluation;
  evaluation.mutable_evaluation()->set_step(100);
  evaluation.mutable_evaluation()->set_loss(2.0);
  evaluation.mutable_evaluation()->set_accuracy(0.93);
  Show(view, evaluation);
  v1::JobUpdate event;
  event.mutable_event()->set_type("warning");
  event.mutable_event()->set_message("3 rows were cut");
  Show(view, event);
  EXPECT_EQ(err_.str(),
            "step 100: validation loss 2.0000, accuracy 0.9300\n"
            "warning: 3 rows were cut\n");
}

TEST_F(ProgressViewTest, SameStateIsToldOnce) {
  ProgressView view(console_, ProgressView::Detail::kAll);
  Show(view, Job(v1::JOB_STATE_PENDING, "waits"));
  Show(view, Job(v1::JOB_STATE_PENDING, "waits"));
  Show(view, Job(v1::JOB_STATE_STARTING));
  EXPECT_EQ(err_.str(), "kjv-1: PENDING, waits\nkjv-1: STARTING\n");
}

TEST_F(ProgressViewTest, TerminalHasOneLineThatGoesAway) {
  console_.err_is_terminal = true;
  {
    ProgressView view(console_, ProgressView::Detail::kAll);
    Show(view, Step(1));
    // Too soon to be drawn.
    Show(view, Step(2));
    now_ += absl::Milliseconds(100);
    Show(view, Step(3));
  }
  const std::string text = err_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0);
  EXPECT_EQ(text.find("step 2"), std::string::npos);
  EXPECT_NE(text.find("\r\033[Kstep 3"), std::string::npos) << text;
  EXPECT_EQ(text.substr(text.size() - 4), "\r\033[K");
}

TEST_F(ProgressViewTest, BarOnlyStillSaysWhyItWaits) {
  ProgressView view(console_, ProgressView::Detail::kBar);
  Show(view, Job(v1::JOB_STATE_PENDING, "waits to be placed"));
  Show(view, Job(v1::JOB_STATE_PENDING, "needs 1 device, 0 are free"));
  EXPECT_EQ(err_.str(), "kjv-1: PENDING, needs 1 device, 0 are free\n");
}

TEST_F(ProgressViewTest, BarOnlyPrintsNoLinesElsewhere) {
  ProgressView view(console_, ProgressView::Detail::kBar);
  Show(view, Job(v1::JOB_STATE_RUNNING));
  Show(view, Phase("loading", 0.5));
  Show(view, Step(1));
  EXPECT_EQ(err_.str(), "");
}

}  // namespace
}  // namespace lockstep
