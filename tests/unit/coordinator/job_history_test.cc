#include "coordinator/jobs/job_history.h"

#include <filesystem>
#include <fstream>

#include "common/log.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::lockstep::testing::TempDir;
using ::testing::SizeIs;

v1::StepReport Step(int64_t step, double loss = 1.0, int64_t tokens = 100) {
  v1::StepReport report;
  report.set_step(step);
  report.set_loss(loss);
  report.set_tokens(tokens);
  report.set_seconds(0.5);
  return report;
}

v1::JobUpdate EventUpdate(const std::string& message) {
  v1::JobUpdate update;
  update.mutable_event()->set_message(message);
  return update;
}

std::unique_ptr<JobHistory> OpenHistory(const TempDir& dir,
                                        JobHistory::Options options = {}) {
  auto history = JobHistory::Open(dir.File("history"), options);
  CHECK(history.ok()) << history.status();
  return *std::move(history);
}

TEST(JobHistoryTest, SequencesRiseByOneAcrossAReopen) {
  const TempDir dir;
  {
    const auto history = OpenHistory(dir);
    EXPECT_EQ(history->Append(0, EventUpdate("a")), 1);
    EXPECT_TRUE(history->AppendStep(1, Step(1)));
    EXPECT_EQ(history->last_sequence(), 2);
  }
  const auto history = OpenHistory(dir);
  EXPECT_EQ(history->Append(1, EventUpdate("b")), 3);
  ASSERT_OK_AND_ASSIGN(const auto updates, history->Read(0, 10));
  ASSERT_THAT(updates, SizeIs(3));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(updates[i].sequence(), i + 1);
  EXPECT_EQ(updates[0].event().message(), "a");
  EXPECT_EQ(updates[1].step().step(), 1);
  EXPECT_EQ(updates[2].event().message(), "b");
}

// What a full disk is like: the folder can't be made.
class Obstacle {
 public:
  explicit Obstacle(const TempDir& dir) : path_(dir.Write("history", "")) {}
  ~Obstacle() { std::filesystem::remove(path_); }

 private:
  const std::string path_;
};

TEST(JobHistoryTest, KeptUpdateIsWrittenWithoutAnotherOne) {
  using Try = void (*)(std::unique_ptr<JobHistory> & history);
  const Try tries[] = {
      [](std::unique_ptr<JobHistory>& history) { history->TryAgain(); },
      [](std::unique_ptr<JobHistory>& history) { history->Settle(); },
      [](std::unique_ptr<JobHistory>& history) { history.reset(); }};
  for (const Try try_again : tries) {
    const TempDir dir;
    auto history = OpenHistory(dir);
    {
      const Obstacle obstacle(dir);
      history->Append(0, EventUpdate("a"));
    }
    EXPECT_EQ(OpenHistory(dir)->last_sequence(), 0);
    try_again(history);
    EXPECT_EQ(OpenHistory(dir)->last_sequence(), 1);
  }
}

TEST(JobHistoryTest, UpdateAsLargeAsAMessageMayBeIsReadAgain) {
  const TempDir dir;
  v1::ActionOutput output;
  output.set_data(std::string(15 << 20, 'x'));
  OpenHistory(dir)->AppendOutput(1, 1, output);
  ASSERT_OK_AND_ASSIGN(const auto updates, OpenHistory(dir)->Read(0, 10));
  ASSERT_THAT(updates, SizeIs(1));
  EXPECT_EQ(updates[0].output().data().size(), output.data().size());
}

TEST(JobHistoryTest, ReadResumesBehindAnySequence) {
  const TempDir dir;
  const auto history = OpenHistory(dir);
  // More than the index has entries for.
  for (int i = 1; i <= 500; ++i) history->AppendStep(1, Step(i));
  for (const int after : {0, 1, 63, 64, 65, 300, 499}) {
    ASSERT_OK_AND_ASSIGN(const auto updates, history->Read(after, 7));
    ASSERT_FALSE(updates.empty()) << after;
    EXPECT_EQ(updates.front().sequence(), after + 1);
    EXPECT_EQ(updates.size(), std::min<size_t>(7, 500 - after));
  }
  ASSERT_OK_AND_ASSIGN(const auto none, history->Read(500, 7));
  EXPECT_THAT(none, SizeIs(0));
}

TEST(JobHistoryTest, RepeatedStepIsDroppedAlsoAfterAReopen) {
  const TempDir dir;
  {
    const auto history = OpenHistory(dir);
    EXPECT_TRUE(history->AppendStep(1, Step(1)));
    EXPECT_TRUE(history->AppendStep(1, Step(2)));
    EXPECT_FALSE(history->AppendStep(1, Step(2)));
  }
  const auto history = OpenHistory(dir);
  EXPECT_FALSE(history->AppendStep(1, Step(1)));
  EXPECT_TRUE(history->AppendStep(1, Step(3)));
  EXPECT_EQ(history->last_sequence(), 3);
}

TEST(JobHistoryTest, StepOfAnOlderGenerationIsDropped) {
  const TempDir dir;
  const auto history = OpenHistory(dir);
  EXPECT_TRUE(history->AppendStep(2, Step(5)));
  EXPECT_FALSE(history->AppendStep(1, Step(6)));
}

TEST(JobHistoryTest, NewestGenerationOfAStepWins) {
  const TempDir dir;
  {
    const auto history = OpenHistory(dir);
    for (int i = 1; i <= 4; ++i) history->AppendStep(1, Step(i, 1.0, 10));
    // From the checkpoint of step 2 on.
    for (int i = 3; i <= 5; ++i) history->AppendStep(2, Step(i, 2.0, 20));
    EXPECT_EQ(history->summary().tokens, 2 * 10 + 3 * 20);
  }
  const auto history = OpenHistory(dir);
  ASSERT_OK_AND_ASSIGN(const auto steps, history->Steps(1));
  ASSERT_THAT(steps, SizeIs(4));
  EXPECT_EQ(steps[0].step(), 2);
  EXPECT_EQ(steps[0].loss(), 1.0);
  EXPECT_EQ(steps[1].step(), 3);
  EXPECT_EQ(steps[1].loss(), 2.0);
  EXPECT_EQ(steps[3].step(), 5);
  EXPECT_EQ(history->summary().tokens, 2 * 10 + 3 * 20);
}

TEST(JobHistoryTest, RepeatedOutputIsDroppedByItsMessage) {
  const TempDir dir;
  v1::ActionOutput output;
  output.set_data("a");
  {
    const auto history = OpenHistory(dir);
    EXPECT_TRUE(history->AppendOutput(1, 5, output));
    EXPECT_FALSE(history->AppendOutput(1, 5, output));
    EXPECT_TRUE(history->AppendOutput(1, 6, output));
  }
  const auto history = OpenHistory(dir);
  EXPECT_FALSE(history->AppendOutput(1, 6, output));
  EXPECT_TRUE(history->AppendOutput(1, 7, output));
}

TEST(JobHistoryTest, RepeatedEvaluationIsDropped) {
  const TempDir dir;
  v1::EvaluationReport evaluation;
  evaluation.set_step(100);
  evaluation.set_loss(1.5);
  {
    const auto history = OpenHistory(dir);
    EXPECT_TRUE(history->AppendEvaluation(1, evaluation));
    EXPECT_FALSE(history->AppendEvaluation(1, evaluation));
  }
  const auto history = OpenHistory(dir);
  EXPECT_FALSE(history->AppendEvaluation(1, evaluation));
  ASSERT_TRUE(history->summary().last_evaluation.has_value());
  EXPECT_EQ(history->summary().last_evaluation->loss(), 1.5);
}

TEST(JobHistoryTest, TornTailIsCutAndWrittenOver) {
  const TempDir dir;
  const std::string path = dir.File("history/segment-000001");
  {
    const auto history = OpenHistory(dir);
    history->AppendStep(1, Step(1));
    history->AppendStep(1, Step(2));
  }
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 3);
  {
    const auto history = OpenHistory(dir);
    EXPECT_EQ(history->last_sequence(), 1);
    EXPECT_TRUE(history->AppendStep(1, Step(2)));
  }
  const auto history = OpenHistory(dir);
  ASSERT_OK_AND_ASSIGN(const auto steps, history->Steps(0));
  EXPECT_THAT(steps, SizeIs(2));
}

TEST(JobHistoryTest, DamagedByteEndsTheHistoryThere) {
  const TempDir dir;
  {
    const auto history = OpenHistory(dir);
    for (int i = 1; i <= 3; ++i) history->AppendStep(1, Step(i));
  }
  std::string bytes = dir.Read("history/segment-000001");
  bytes[bytes.size() / 2] ^= 1;
  dir.Write("history/segment-000001", bytes);
  const auto history = OpenHistory(dir);
  EXPECT_LT(history->last_sequence(), 3);
  ASSERT_OK_AND_ASSIGN(const auto steps, history->Steps(0));
  EXPECT_EQ(static_cast<int64_t>(steps.size()), history->last_sequence());
}

TEST(JobHistoryTest, HugeLengthIsNotBelieved) {
  const TempDir dir;
  std::string bytes = "LKHIST1\n";
  bytes.append(64, '\xff');
  dir.Write("history/segment-000001", bytes);
  const auto history = OpenHistory(dir);
  EXPECT_EQ(history->last_sequence(), 0);
  EXPECT_TRUE(history->AppendStep(1, Step(1)));
}

TEST(JobHistoryTest, FileThatIsNoHistoryIsBegunAnew) {
  const TempDir dir;
  dir.Write("history/segment-000001", "something else entirely");
  {
    const auto history = OpenHistory(dir);
    EXPECT_TRUE(history->AppendStep(1, Step(1)));
  }
  const auto history = OpenHistory(dir);
  ASSERT_OK_AND_ASSIGN(const auto steps, history->Steps(0));
  EXPECT_THAT(steps, SizeIs(1));
}

TEST(JobHistoryTest, OldestSegmentGoesWhenThereAreTooMany) {
  const TempDir dir;
  const JobHistory::Options options{.segment_bytes = 1000, .segments = 3};
  int64_t first = 0;
  {
    const auto history = OpenHistory(dir, options);
    for (int i = 1; i <= 200; ++i) history->AppendStep(1, Step(i));
    ASSERT_OK_AND_ASSIGN(const auto updates, history->Read(0, 1000));
    ASSERT_FALSE(updates.empty());
    first = updates.front().sequence();
    EXPECT_GT(first, 1);
    EXPECT_EQ(updates.back().sequence(), 200);
  }
  int64_t bytes = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(dir.File("history"))) {
    bytes += static_cast<int64_t>(entry.file_size());
  }
  EXPECT_LE(bytes, 3 * (1000 + 100));
  const auto history = OpenHistory(dir, options);
  ASSERT_OK_AND_ASSIGN(const auto updates, history->Read(0, 1000));
  EXPECT_EQ(updates.front().sequence(), first);
}

TEST(JobHistoryTest, UpdatesStayReadableWhileTheDiskTakesNone) {
  const TempDir dir;
  // A file where the folder should be: nothing can be written.
  dir.Write("history", "in the way");
  auto opened = JobHistory::Open(dir.File("history"), {});
  if (!opened.ok()) {
    // Reading a folder that is a file fails at once: begin with none.
    std::filesystem::remove(dir.File("history"));
    opened = JobHistory::Open(dir.File("history"), {});
    dir.Write("history", "in the way");
  }
  ASSERT_OK(opened.status());
  const auto history = *std::move(opened);
  history->AppendStep(1, Step(1));
  history->AppendStep(1, Step(2));
  ASSERT_OK_AND_ASSIGN(auto updates, history->Read(0, 10));
  EXPECT_THAT(updates, SizeIs(2));
  // And are written once it does.
  std::filesystem::remove(dir.File("history"));
  history->AppendStep(1, Step(3));
  ASSERT_OK_AND_ASSIGN(updates, history->Read(0, 10));
  EXPECT_THAT(updates, SizeIs(3));
  const auto again = OpenHistory(dir);
  EXPECT_EQ(again->last_sequence(), 3);
}

TEST(JobHistoryTest, SummaryHasMediansOfTheNewestSteps) {
  const TempDir dir;
  const auto history = OpenHistory(dir);
  for (int i = 1; i <= 5; ++i) {
    v1::StepReport step = Step(i, 1.0, 100);
    step.set_seconds(i == 5 ? 100.0 : i);  // 1 2 3 4 100
    history->AppendStep(1, step);
  }
  const HistorySummary summary = history->summary();
  EXPECT_DOUBLE_EQ(*summary.step_seconds, 3.0);
  EXPECT_DOUBLE_EQ(*summary.tokens_per_second, 100.0 / 3.0);
  EXPECT_EQ(summary.last_step->step(), 5);
  EXPECT_EQ(summary.tokens, 500);
}

TEST(JobHistoryTest, WaiterIsWokenByAppendProgressAndClose) {
  const TempDir dir;
  const auto history = OpenHistory(dir);
  EXPECT_FALSE(history->WaitForMore(0, 0, absl::ZeroDuration()));
  std::thread appender([&] { history->AppendStep(1, Step(1)); });
  EXPECT_TRUE(history->WaitForMore(0, 0, absl::Seconds(30)));
  appender.join();
  v1::Progress progress;
  progress.set_phase("training");
  history->SetProgress(progress);
  EXPECT_TRUE(history->WaitForMore(1, 0, absl::Seconds(30)));
  EXPECT_EQ(history->progress().progress.phase(), "training");
  history->Close();
  EXPECT_TRUE(history->WaitForMore(100, 100, absl::Seconds(30)));
}

}  // namespace
}  // namespace lockstep
