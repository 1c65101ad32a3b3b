#include "coordinator/jobs/job_table.h"

#include <filesystem>
#include <thread>

#include "common/log.h"
#include "coordinator/jobs/job_report.h"
#include "coordinator/store/sqlite_job_store.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/coordinator/test_jobs.h"

namespace lockstep {
namespace {

using ::lockstep::testing::FakeClock;
using ::lockstep::testing::FilledSpec;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr absl::Duration kPatience = absl::Seconds(30);

class JobTableTest : public ::testing::Test {
 protected:
  JobTableTest() { Restart(); }

  void Restart() {
    table_.reset();
    store_.reset();
    auto store = SqliteJobStore::Open(
        {.path = dir_.File("state.db"), .on_commit = nullptr});
    CHECK(store.ok()) << store.status();
    store_ = *std::move(store);
    auto table = JobTable::Load(
        *store_, *store_->Load(), clock_,
        {.job_root = dir_.File("jobs"),
         .history = {},
         .on_move = nullptr,
         .random_suffix = [this](int length) {
           return std::string(static_cast<size_t>(length), next_suffix_++);
         }});
    CHECK(table.ok()) << table.status();
    table_ = *std::move(table);
  }

  // Id of a new job.
  std::string Add(const std::string& name, const std::string& request = "") {
    JobRecord job;
    job.request_id =
        request.empty() ? "r" + std::to_string(next_request_++) : request;
    job.spec = FilledSpec(name);
    job.devices = 1;
    const auto added = table_->Add(job, kPatience);
    CHECK(added.ok()) << added.status();
    return added->id;
  }

  AttemptRecord Attempt(const std::string& id) {
    AttemptRecord attempt;
    attempt.job = id;
    attempt.generation = *table_->NextGeneration(id);
    attempt.layout.mutable_layout()->set_dp(1);
    attempt.ranks.push_back({"w0", "i0", "cpu:0", 0, false});
    return attempt;
  }

  // Runs a job to its end.
  void Finish(const std::string& id, JobState state) {
    AttemptRecord attempt = Attempt(id);
    ASSERT_OK(table_->StartAttempt(attempt, "starting"));
    ASSERT_OK(table_->MarkRunning(id, "running"));
    attempt.ended = clock_.Now();
    ASSERT_OK(table_->EndAttempt(attempt, state, "over"));
  }

  CheckpointRecord Checkpoint(const std::string& id, int64_t step) {
    CheckpointRecord checkpoint;
    checkpoint.job = id;
    checkpoint.generation = 1;
    checkpoint.step = step;
    checkpoint.path = table_->JobFolder(id) + "/step-" + std::to_string(step);
    return checkpoint;
  }

  const TempDir dir_;
  FakeClock clock_;
  char next_suffix_ = 'a';
  int next_request_ = 0;
  std::unique_ptr<SqliteJobStore> store_;
  std::unique_ptr<JobTable> table_;
};

TEST_F(JobTableTest, IdIsNameAndShortSuffix) {
  EXPECT_EQ(Add("kjv"), "kjv-aaaa");
}

TEST_F(JobTableTest, TakenSuffixIsNotUsedAgain) {
  const std::string first = Add("kjv");
  next_suffix_ = 'a';
  EXPECT_EQ(Add("kjv"), "kjv-bbbb");
}

TEST_F(JobTableTest, RepeatedRequestGivesTheSameJobAlsoAfterARestart) {
  const std::string id = Add("kjv", "request-1");
  EXPECT_EQ(Add("kjv", "request-1"), id);
  Restart();
  EXPECT_EQ(Add("kjv", "request-1"), id);
  EXPECT_THAT(table_->List(), SizeIs(1));
}

TEST_F(JobTableTest, ConcurrentRepeatsMakeOneJob) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      JobRecord job;
      job.request_id = "same";
      job.spec = FilledSpec("kjv");
      CHECK(table_->Add(job, kPatience).ok()) << "add";
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(table_->List(), SizeIs(1));
}

TEST_F(JobTableTest, NameMeansItsNewestJob) {
  Add("kjv");
  const std::string newest = Add("kjv");
  Add("other");
  EXPECT_THAT(table_->Resolve("kjv"), IsOkAndHolds(newest));
}

TEST_F(JobTableTest, UniquePrefixResolvesAndAmbiguousOneDoesNot) {
  const std::string a = Add("kjv");
  Add("kjv");
  EXPECT_THAT(table_->Resolve("kjv-a"), IsOkAndHolds(a));
  EXPECT_THAT(table_->Resolve("kj"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("prefix of 2 jobs")));
  EXPECT_THAT(table_->Resolve("nope"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"nope\"")));
}

TEST_F(JobTableTest, ActionsDoNotHideTrainedJobs) {
  const std::string trained = Add("kjv");
  JobRecord action;
  action.request_id = "action";
  action.spec = FilledSpec("kjv");
  action.spec.mutable_action()->mutable_generate();
  ASSERT_OK(table_->Add(action, kPatience).status());
  EXPECT_THAT(table_->Resolve("kjv"), IsOkAndHolds(trained));
}

TEST_F(JobTableTest, RestartedTableKnowsStateAttemptsAndCheckpoints) {
  const std::string id = Add("kjv");
  AttemptRecord attempt = Attempt(id);
  ASSERT_OK(table_->StartAttempt(attempt, "starting"));
  ASSERT_OK(table_->MarkRunning(id, "running on w0"));
  ASSERT_OK(table_->CommitCheckpoint(Checkpoint(id, 5)));
  v1::MemoryReport memory;
  memory.set_rank(0);
  memory.set_peak_bytes(99);
  ASSERT_OK(table_->RecordMemory(id, 1, memory));
  v1::RunFacts facts;
  facts.set_steps(12);
  ASSERT_OK(table_->RecordFacts(id, 1, facts));
  Restart();
  ASSERT_OK_AND_ASSIGN(const JobRecord job, table_->Get(id));
  EXPECT_EQ(job.state, v1::JOB_STATE_RUNNING);
  EXPECT_EQ(job.reason, "running on w0");
  EXPECT_EQ(job.steps, 12);
  EXPECT_EQ(job.generation, 1);
  EXPECT_THAT(table_->Running(), SizeIs(1));
  EXPECT_THAT(table_->Checkpoints(id), SizeIs(1));
  ASSERT_THAT(table_->Memory(id), SizeIs(1));
  EXPECT_EQ(table_->Memory(id)[0].peak_bytes(), 99u);
  ASSERT_TRUE(table_->NewestAttempt(id).has_value());
  EXPECT_EQ(table_->NewestAttempt(id)->ranks[0].worker, "w0");
}

TEST_F(JobTableTest, GenerationIsNeverUsedTwice) {
  const std::string id = Add("kjv");
  EXPECT_THAT(table_->NextGeneration(id), IsOkAndHolds(1));
  EXPECT_THAT(table_->NextGeneration(id), IsOkAndHolds(2));
  ASSERT_OK(store_->WaitUntilStored(kPatience));
  Restart();
  EXPECT_THAT(table_->NextGeneration(id), IsOkAndHolds(3));
}

TEST_F(JobTableTest, ForbiddenTransitionChangesNothing) {
  const std::string id = Add("kjv");
  EXPECT_THAT(table_->MarkRunning(id, "x"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("PENDING and can't become RUNNING")));
  ASSERT_OK_AND_ASSIGN(const JobRecord job, table_->Get(id));
  EXPECT_EQ(job.state, v1::JOB_STATE_PENDING);
}

TEST_F(JobTableTest, HistoryTellsStatesInOrder) {
  const std::string id = Add("kjv");
  Finish(id, v1::JOB_STATE_SUCCEEDED);
  ASSERT_OK_AND_ASSIGN(const auto history, table_->History(id));
  ASSERT_OK_AND_ASSIGN(const auto updates, history->Read(0, 100));
  std::vector<std::string> states;
  for (const v1::JobUpdate& update : updates) {
    if (update.has_job()) states.push_back(JobStateWord(update.job().state()));
    if (update.has_layout()) states.push_back("layout");
  }
  EXPECT_THAT(states, ::testing::ElementsAre("PENDING", "STARTING", "layout",
                                             "RUNNING", "SUCCEEDED"));
}

TEST_F(JobTableTest, AttemptStartsEvenIfItsHistoryCanNotBeOpened) {
  // A file where the folder would be.
  dir_.Write("jobs/kjv-aaaa/history", "");
  const std::string id = Add("kjv");
  ASSERT_EQ(id, "kjv-aaaa");
  EXPECT_OK(table_->StartAttempt(Attempt(id), "starting"));
  EXPECT_EQ(table_->Get(id)->state, v1::JOB_STATE_STARTING);
}

TEST_F(JobTableTest, NewestCheckpointsAreKept) {
  const std::string id = Add("kjv");
  for (int step = 1; step <= 4; ++step) {
    ASSERT_OK(table_->CommitCheckpoint(Checkpoint(id, step)));
  }
  const auto forgotten = table_->ForgetOldCheckpoints(id, 2);
  ASSERT_THAT(forgotten, SizeIs(2));
  EXPECT_EQ(forgotten[0].step, 1);
  EXPECT_EQ(forgotten[1].step, 2);
  ASSERT_OK(store_->WaitUntilStored(kPatience));
  Restart();
  const auto left = table_->Checkpoints(id);
  ASSERT_THAT(left, SizeIs(2));
  EXPECT_EQ(left[0].step, 4);
}

TEST_F(JobTableTest, CheckpointThatALiveJobStartsFromStays) {
  const std::string source = Add("kjv");
  for (int step = 1; step <= 3; ++step) {
    ASSERT_OK(table_->CommitCheckpoint(Checkpoint(source, step)));
  }
  Finish(source, v1::JOB_STATE_SUCCEEDED);
  JobRecord resumed;
  resumed.request_id = "resumed";
  resumed.spec = FilledSpec("kjv");
  resumed.resume_job = source;
  resumed.resume_checkpoint = Checkpoint(source, 1).path;
  ASSERT_OK_AND_ASSIGN(const JobRecord added, table_->Add(resumed, kPatience));
  const auto forgotten = table_->ForgetOldCheckpoints(source, 1);
  ASSERT_THAT(forgotten, SizeIs(1));
  EXPECT_EQ(forgotten[0].step, 2);
  EXPECT_THAT(table_->Delete(source, kPatience),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("starts from its checkpoint")));
  ASSERT_OK(table_->EndPending(added.id, v1::JOB_STATE_CANCELLED,
                               v1::CAUSE_UNSPECIFIED, "cancelled"));
  ASSERT_OK(table_->Delete(source, kPatience));
}

TEST_F(JobTableTest, DeleteTakesRowsAndFolder) {
  const std::string id = Add("kjv", "request-1");
  EXPECT_THAT(table_->Delete(id, kPatience),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("cancel it first")));
  Finish(id, v1::JOB_STATE_FAILED);
  EXPECT_TRUE(std::filesystem::exists(table_->JobFolder(id)));
  ASSERT_OK(table_->Delete(id, kPatience));
  EXPECT_FALSE(std::filesystem::exists(table_->JobFolder(id)));
  EXPECT_THAT(table_->Get(id), StatusIs(absl::StatusCode::kNotFound));
  Restart();
  EXPECT_THAT(table_->List(), SizeIs(0));
  // Its request may come again, and makes a new job.
  EXPECT_NE(Add("kjv", "request-1"), id);
}

TEST_F(JobTableTest, ReportHasWhatWasRecorded) {
  const std::string id = Add("kjv");
  AttemptRecord attempt = Attempt(id);
  attempt.layout.mutable_layout()->set_micro_batch(4);
  ASSERT_OK(table_->StartAttempt(attempt, "starting"));
  ASSERT_OK(table_->MarkRunning(id, "running"));
  v1::RunFacts facts;
  facts.set_steps(10);
  facts.set_start_step(1);
  ASSERT_OK(table_->RecordFacts(id, 1, facts));
  ASSERT_OK_AND_ASSIGN(const auto history, table_->History(id));
  for (int i = 2; i <= 3; ++i) {
    v1::StepReport step;
    step.set_step(i);
    step.set_loss(5.0 / i);
    step.set_grad_norm(0.5);
    step.set_tokens(128);
    step.set_seconds(0.25);
    history->AppendStep(1, step);
  }
  v1::EvaluationReport evaluation;
  evaluation.set_step(3);
  evaluation.set_loss(2.0);
  evaluation.set_bits_per_byte(1.7);
  history->AppendEvaluation(1, evaluation);
  ASSERT_OK(table_->CommitCheckpoint(Checkpoint(id, 3)));
  attempt = *table_->NewestAttempt(id);
  attempt.outcome = v1::OUTCOME_FAILED;
  attempt.cause = v1::CAUSE_OOM_KILL;
  attempt.first_rank = 0;
  attempt.worker = "w0";
  attempt.message = "killed";
  ASSERT_OK(
      table_->EndAttempt(attempt, v1::JOB_STATE_FAILED, "rank 0: killed"));
  ASSERT_OK_AND_ASSIGN(const JobRecord job, table_->Get(id));
  const v1::JobReport report =
      MakeJobReport(job, table_->Attempts(id), table_->Checkpoints(id),
                    table_->Memory(id), history->summary());
  EXPECT_EQ(report.job().state(), "FAILED");
  EXPECT_EQ(report.job().reason(), "rank 0: killed");
  EXPECT_EQ(report.layout().micro_batch(), 4);
  EXPECT_EQ(report.progress().step(), 3);
  EXPECT_EQ(report.progress().steps(), 10);
  EXPECT_EQ(report.progress().tokens(), 256);
  EXPECT_EQ(report.progress().samples(), 2 * 8);
  EXPECT_DOUBLE_EQ(report.metrics().train_loss(), 5.0 / 3);
  EXPECT_DOUBLE_EQ(report.metrics().validation_bits_per_byte(), 1.7);
  EXPECT_FALSE(report.metrics().has_validation_accuracy());
  EXPECT_DOUBLE_EQ(report.speed().tokens_per_second(), 512);
  EXPECT_FALSE(report.speed().has_model_flops_utilization());
  ASSERT_THAT(report.attempts(), SizeIs(1));
  EXPECT_EQ(report.attempts(0).outcome(), "failed");
  EXPECT_EQ(report.attempts(0).cause(), "oom_kill");
  EXPECT_EQ(report.attempts(0).first_rank(), 0);
  EXPECT_EQ(report.checkpoint().step(), 3);
}

}  // namespace
}  // namespace lockstep
