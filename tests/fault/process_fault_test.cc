// Dead and hung processes: the job ends with the first rank and its cause, or
// runs on, within seconds; nothing is left running.

#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/cluster.h"
#include "tests/testing/number.h"
#include "tests/testing/sandbox.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/tiny_job.h"

namespace lockstep {
namespace {

using ::lockstep::testing::ChildProcess;
using ::lockstep::testing::Cluster;
using ::lockstep::testing::CommandResult;
using ::lockstep::testing::EndlessJob;
using ::lockstep::testing::MarkedProcess;
using ::lockstep::testing::Number;
using ::lockstep::testing::Sandbox;
using ::lockstep::testing::Stream;
using ::lockstep::testing::TinyJob;
using ::lockstep::testing::WriteJob;
using ::nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr absl::Duration kEndTimeout = absl::Seconds(10);

// A `run` on two workers that trains for hours, once it trains.
std::unique_ptr<ChildProcess> StartTraining(Sandbox& sandbox, json job) {
  auto run = sandbox.Start("lockstep", {"run", WriteJob(sandbox.dir(), job),
                                        "--local", "2", "-o", "json"});
  EXPECT_OK(run->WaitForLine(Stream::kStderr, "loss", absl::Seconds(30)));
  return run;
}

// Sends `signal` to one of the two ranks: they are started in order, so the
// higher pid is the higher rank. Returns both.
std::vector<MarkedProcess> SignalRank(const Sandbox& sandbox, size_t rank,
                                      int signal) {
  const std::vector<MarkedProcess> ranks = sandbox.Running("lockstep-rank");
  EXPECT_THAT(ranks, SizeIs(2));
  if (ranks.size() == 2) kill(ranks[rank].pid, signal);
  return ranks;
}

void ExpectFailedAttempt(const CommandResult& run, const std::string& cause) {
  EXPECT_EQ(run.code, 1) << run;
  const json report = run.Json();
  ASSERT_TRUE(report.is_object()) << run;
  EXPECT_EQ(report["job"]["state"], "FAILED") << run;
  ASSERT_THAT(report["attempts"], SizeIs(1)) << run;
  const json& attempt = report["attempts"][0];
  EXPECT_EQ(attempt["cause"], cause) << run;
  EXPECT_TRUE(attempt.contains("first_rank")) << run;
  EXPECT_FALSE(std::string(attempt["message"]).empty());
}

TEST(ProcessFaultTest, KilledRankFailsTheJobBySignal) {
  Sandbox sandbox;
  auto run = StartTraining(sandbox, EndlessJob(sandbox.dir()));

  SignalRank(sandbox, 1, SIGKILL);

  const CommandResult result = Sandbox::Finish(*run, kEndTimeout);
  ExpectFailedAttempt(result, "signal");
  EXPECT_OK(sandbox.WaitForNothingLeft(kEndTimeout));
}

TEST(ProcessFaultTest, StoppedRankIsAHang) {
  Sandbox sandbox;
  json job = EndlessJob(sandbox.dir());
  job["restart"]["hang_timeout"] = "2s";
  auto run = StartTraining(sandbox, job);

  SignalRank(sandbox, 1, SIGSTOP);

  const CommandResult result = Sandbox::Finish(*run, absl::Seconds(25));
  ExpectFailedAttempt(result, "hang");
  EXPECT_OK(sandbox.WaitForNothingLeft(kEndTimeout));
}

TEST(ProcessFaultTest, KilledWorkerFailsTheJobAsLost) {
  Sandbox sandbox;
  auto run = StartTraining(sandbox, EndlessJob(sandbox.dir()));
  const auto workers = sandbox.Running("lockstep-worker");
  ASSERT_THAT(workers, SizeIs(2));

  kill(workers[1].pid, SIGKILL);

  const CommandResult result = Sandbox::Finish(*run, absl::Seconds(30));
  ExpectFailedAttempt(result, "lost_worker");
  EXPECT_OK(sandbox.WaitForNothingLeft(kEndTimeout));
}

TEST(ProcessFaultTest, KilledWorkerLeavesTheOthersUsable) {
  Sandbox sandbox;
  Cluster cluster(sandbox, {.workers = 2});
  json job = EndlessJob(sandbox.dir());
  job["resources"]["devices"] = 2;
  auto submit = sandbox.Start(
      "lockstep", {"submit", WriteJob(sandbox.dir(), job, "endless")});
  ASSERT_OK(submit->WaitForLine(Stream::kStderr, "loss", absl::Seconds(30)));

  cluster.worker(1).Signal(SIGKILL);

  const CommandResult result = Sandbox::Finish(*submit, absl::Seconds(30));
  EXPECT_EQ(result.code, 1) << result;
  const CommandResult next = sandbox.Lockstep(
      {"submit", WriteJob(sandbox.dir(), TinyJob(sandbox.dir()))});
  EXPECT_EQ(next.code, 0) << next;
  EXPECT_TRUE(sandbox.Running("lockstep-rank").empty());
}

TEST(ProcessFaultTest, RunRestartsAKilledCoordinatorAndTheJobRunsOn) {
  Sandbox sandbox;
  json job = TinyJob(sandbox.dir());
  job["train"]["steps"] = 1500;
  job["checkpoint"]["every_steps"] = 500;
  auto run = StartTraining(sandbox, job);
  const auto coordinators = sandbox.Running("lockstep-coordinator");
  ASSERT_THAT(coordinators, SizeIs(1));

  kill(coordinators[0].pid, SIGKILL);

  const CommandResult result = Sandbox::Finish(*run);
  EXPECT_EQ(result.code, 0) << result;
  const json report = result.Json();
  EXPECT_EQ(report["job"]["state"], "SUCCEEDED") << result;
  EXPECT_THAT(report["attempts"], SizeIs(1)) << result;
  EXPECT_EQ(Number(report["progress"]["step"]), 1500) << result;
  EXPECT_OK(sandbox.WaitForNothingLeft(kEndTimeout));
}

TEST(ProcessFaultTest, KilledRunTakesAllItsProcessesAlong) {
  Sandbox sandbox;
  auto run = StartTraining(sandbox, EndlessJob(sandbox.dir()));
  ASSERT_THAT(sandbox.Running("lockstep-rank"), SizeIs(2));

  run->Signal(SIGKILL);

  EXPECT_OK(sandbox.WaitForNothingLeft(kEndTimeout));
  // The folder is usable again, and what was stored is still there.
  const CommandResult next = sandbox.Lockstep(
      {"run", WriteJob(sandbox.dir(), TinyJob(sandbox.dir())), "--local", "2"});
  EXPECT_EQ(next.code, 0) << next;
  const CommandResult jobs = sandbox.Lockstep({"get", "jobs", "-o", "json"});
  ASSERT_THAT(jobs.Json(), SizeIs(2)) << jobs;
  EXPECT_EQ(jobs.Json()[1]["name"], "endless");
  EXPECT_EQ(jobs.Json()[1]["state"], "FAILED");
}

TEST(ProcessFaultTest, KilledRankOfOneWorkerStopsTheOthersRanksAtOnce) {
  Sandbox sandbox;
  Cluster cluster(sandbox, {.workers = 2});
  json job = EndlessJob(sandbox.dir());
  job["resources"]["devices"] = 2;
  auto submit = sandbox.Start(
      "lockstep", {"submit", WriteJob(sandbox.dir(), job, "endless")});
  ASSERT_OK(submit->WaitForLine(Stream::kStderr, "loss", absl::Seconds(30)));
  const absl::Time killed = absl::Now();

  const auto ranks = SignalRank(sandbox, 0, SIGKILL);

  ASSERT_THAT(ranks, SizeIs(2));
  EXPECT_OK(testing::WaitForProcessEnd(ranks[1].pid, kEndTimeout));
  EXPECT_LT(absl::Now() - killed, absl::Seconds(5));
  const CommandResult result = Sandbox::Finish(*submit, kEndTimeout);
  EXPECT_EQ(result.code, 1) << result;
}

}  // namespace
}  // namespace lockstep
