// What a coordinator makes of a store that an earlier life left in the middle
// of a gang's end.
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "common/log.h"
#include "coordinator/store/sqlite_job_store.h"
#include "gmock/gmock.h"
#include "tests/unit/coordinator/coordinator_fixture.h"

namespace lockstep {
namespace testing {
namespace {

using ::testing::HasSubstr;

class CoordinatorRecoveryTest : public CoordinatorFixture {
 protected:
  // A job of one rank that runs.
  std::string RunOne(FakeWorker& worker) {
    CHECK(worker.Connect(address()).has_value()) << "not welcome";
    const std::string id = Submit(1);
    gang_ = worker.StartGang().gang();
    AwaitState(id, v1::JOB_STATE_RUNNING);
    return id;
  }

  // Starts the coordinator again, with other ranks stored of the attempt.
  void RestartWith(const std::function<void(RankRecord&)>& edit) {
    Stop();
    {
      auto store = SqliteJobStore::Open(
          {.path = options_.store_path, .on_commit = nullptr});
      CHECK(store.ok()) << store.status();
      auto state = (*store)->Load();
      CHECK(state.ok()) << state.status();
      StoreChange change;
      for (AttemptRecord& attempt : state->attempts) {
        for (RankRecord& rank : attempt.ranks) edit(rank);
        change.attempts.push_back(attempt);
      }
      (*store)->Enqueue(std::move(change));
    }
    Start();
  }

  v1::GangId gang_;
};

TEST_F(CoordinatorRecoveryTest, RanksThatEndedBeforeTheFirstStepAreNoSuccess) {
  FakeWorker worker("w0", "i1", 1);
  const std::string id = RunOne(worker);
  RestartWith([](RankRecord& rank) { rank.exited = true; });
  EXPECT_THAT(AwaitState(id, v1::JOB_STATE_FAILED).reason(),
              HasSubstr("without a committed checkpoint"));
}

TEST_F(CoordinatorRecoveryTest, RankThatEndedBadlyIsNoSuccess) {
  FakeWorker worker("w0", "i1", 1);
  const std::string id = RunOne(worker);
  worker.Step(gang_, 2);
  ASSERT_TRUE(worker.AwaitAcknowledged(worker.Checkpoint(gang_, 2)));
  RestartWith([](RankRecord& rank) {
    rank.exited = true;
    rank.ended_badly = true;
  });
  EXPECT_THAT(AwaitState(id, v1::JOB_STATE_FAILED).reason(),
              HasSubstr("ended before the coordinator was started again"));
}

TEST_F(CoordinatorRecoveryTest, RanksThatEndedWellAfterTheLastStepAreASuccess) {
  FakeWorker worker("w0", "i1", 1);
  const std::string id = RunOne(worker);
  worker.Step(gang_, 2);
  ASSERT_TRUE(worker.AwaitAcknowledged(worker.Checkpoint(gang_, 2)));
  RestartWith([](RankRecord& rank) { rank.exited = true; });
  AwaitState(id, v1::JOB_STATE_SUCCEEDED);
}

TEST_F(CoordinatorRecoveryTest, ExitIsStoredTogetherWithItsCause) {
  FakeWorker worker("w0", "i1", 2);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(2);
  gang_ = worker.StartGang().gang();
  AwaitState(id, v1::JOB_STATE_RUNNING);
  ASSERT_TRUE(worker.AwaitAcknowledged(
      worker.Exited(gang_, 1, v1::CAUSE_OUT_OF_MEMORY, "5 GiB of 4")));
  Stop();
  ASSERT_TRUE(worker.AwaitEnd());
  Start();
  ASSERT_TRUE(worker.Connect(address(), {RunningRank(gang_, 0)}).has_value());
  worker.Exited(gang_, 0, v1::CAUSE_EXIT, "peer is gone", true);
  EXPECT_THAT(AwaitState(id, v1::JOB_STATE_FAILED).reason(),
              HasSubstr("5 GiB of 4"));
}

TEST_F(CoordinatorRecoveryTest, JobWithNothingLeftToTrainSucceeds) {
  FakeWorker worker("w0", "i1", 1);
  const std::string id = RunOne(worker);
  v1::RankReport facts;
  facts.mutable_facts()->set_steps(10);
  facts.mutable_facts()->set_start_step(10);
  worker.Report(gang_, 0, facts);
  worker.Exited(gang_, 0);
  AwaitState(id, v1::JOB_STATE_SUCCEEDED);
}

TEST_F(CoordinatorRecoveryTest, LeftoversOfEndedAndDeletedJobsAreRemoved) {
  const std::string id = Submit(1);
  ASSERT_TRUE(Cancel(id).ok());
  Stop();
  const std::string torn = "jobs/" + id + "/.step-5.g1.tmp";
  dir_.Write(torn + "/shard", "x");
  dir_.Write("jobs/gone-aaaa/.deleted", "");
  Start();
  Stop();  // ends the removing too
  EXPECT_FALSE(std::filesystem::exists(dir_.File(torn)));
  EXPECT_TRUE(std::filesystem::exists(dir_.File("jobs/" + id)));
  EXPECT_FALSE(std::filesystem::exists(dir_.File("jobs/gone-aaaa")));
}

}  // namespace
}  // namespace testing
}  // namespace lockstep
