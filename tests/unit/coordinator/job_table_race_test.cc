// What happens to a job's checkpoints while another job that starts from one is
// on its way into the store.
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "coordinator/jobs/job_table.h"
#include "gmock/gmock.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/coordinator/fake_job_store.h"
#include "tests/unit/coordinator/test_jobs.h"

namespace lockstep {
namespace testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kPatience = absl::Seconds(30);

class JobTableRaceTest : public ::testing::Test {
 protected:
  JobTableRaceTest() {
    auto table = JobTable::Load(
        store_, StoredState(), clock_,
        {.job_root = dir_.File("jobs"),
         .history = {},
         .on_move = nullptr,
         .random_suffix = [this](int length) {
           return std::string(static_cast<size_t>(length), next_suffix_++);
         }});
    CHECK(table.ok()) << table.status();
    table_ = *std::move(table);
    JobRecord job;
    job.request_id = "source";
    job.spec = FilledSpec("kjv");
    const auto added = table_->Add(job, kPatience);
    CHECK(added.ok()) << added.status();
    source_ = added->id;
    for (int step = 1; step <= 3; ++step) {
      CHECK(table_->CommitCheckpoint(Checkpoint(step)).ok()) << step;
    }
  }

  CheckpointRecord Checkpoint(int64_t step) {
    CheckpointRecord checkpoint;
    checkpoint.job = source_;
    checkpoint.generation = 1;
    checkpoint.step = step;
    checkpoint.path = "/jobs/" + source_ + "/step-" + std::to_string(step);
    return checkpoint;
  }

  JobRecord Resumed(int64_t step) {
    JobRecord job;
    job.request_id = "resumed";
    job.spec = FilledSpec("kjv");
    job.resume_job = source_;
    job.resume_checkpoint = Checkpoint(step).path;
    return job;
  }

  JobRecord Generate(int64_t step) {
    JobRecord job;
    job.request_id = "generate";
    job.spec = FilledSpec("kjv");
    job.spec.mutable_action()->set_source_job(source_);
    job.spec.mutable_action()->set_checkpoint(Checkpoint(step).path);
    return job;
  }

  // Steps that are forgotten while `job` is on its way into the store.
  std::vector<int64_t> ForgottenDuring(const JobRecord& job) {
    store_.Hold();
    absl::Status status;
    std::thread adder([&] { status = table_->Add(job, kPatience).status(); });
    EXPECT_TRUE(store_.AwaitWrite());
    std::vector<int64_t> steps;
    for (const CheckpointRecord& one :
         table_->ForgetOldCheckpoints(source_, 1)) {
      steps.push_back(one.step);
    }
    store_.Answer();
    adder.join();
    EXPECT_OK(status);
    return steps;
  }

  TempDir dir_;
  FakeClock clock_;
  FakeJobStore store_;
  std::unique_ptr<JobTable> table_;
  std::string source_;
  char next_suffix_ = 'a';
};

TEST_F(JobTableRaceTest, CheckpointOfAResumeOnItsWayStays) {
  EXPECT_THAT(ForgottenDuring(Resumed(2)), ::testing::ElementsAre(1));
}

TEST_F(JobTableRaceTest, CheckpointOfAnActionOnItsWayStays) {
  EXPECT_THAT(ForgottenDuring(Generate(1)), ::testing::ElementsAre(2));
}

TEST_F(JobTableRaceTest, CheckpointForgottenBeforeTheAddIsRefusedForARetry) {
  ASSERT_THAT(table_->ForgetOldCheckpoints(source_, 1),
              ::testing::Not(IsEmpty()));
  for (const JobRecord& job : {Resumed(1), Generate(1)}) {
    EXPECT_THAT(table_->Add(job, kPatience),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("may be sent again")));
  }
  EXPECT_OK(table_->Add(Resumed(3), kPatience));
}

TEST_F(JobTableRaceTest, FolderIsMarkedBeforeTheRowsGo) {
  ASSERT_OK(table_->EndPending(source_, v1::JOB_STATE_CANCELLED,
                               v1::CAUSE_UNSPECIFIED, "cancelled"));
  const std::string mark = table_->JobFolder(source_) + "/.deleted";
  store_.Hold();
  absl::Status status;
  std::thread deleter([&] { status = table_->Delete(source_, kPatience); });
  ASSERT_TRUE(store_.AwaitWrite());
  EXPECT_TRUE(std::filesystem::exists(mark));
  store_.Answer();
  deleter.join();
  EXPECT_OK(status);
  EXPECT_FALSE(std::filesystem::exists(table_->JobFolder(source_)));
}

TEST_F(JobTableRaceTest, DeletionThatACrashCutShortIsEnded) {
  dir_.Write("jobs/gone-aaaa/.deleted", "");
  dir_.Write("jobs/gone-aaaa/step-1.g1/shard", "x");
  // Of an older store, say.
  dir_.Write("jobs/strange-aaaa/history/segment-000001", "x");
  dir_.Write("jobs/" + source_ + "/.deleted", "");
  table_->EndDeletions();
  EXPECT_FALSE(std::filesystem::exists(dir_.File("jobs/gone-aaaa")));
  EXPECT_TRUE(std::filesystem::exists(dir_.File("jobs/strange-aaaa/history")));
  EXPECT_TRUE(std::filesystem::exists(table_->JobFolder(source_)));
  EXPECT_FALSE(
      std::filesystem::exists(table_->JobFolder(source_) + "/.deleted"));
}

}  // namespace
}  // namespace testing
}  // namespace lockstep
