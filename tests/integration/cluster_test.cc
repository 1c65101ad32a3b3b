// A cluster whose daemons are started by hand, and the verbs that ask it.

#include "tests/testing/cluster.h"

#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/number.h"
#include "tests/testing/sandbox.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/tiny_job.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Cluster;
using ::lockstep::testing::CommandResult;
using ::lockstep::testing::EndlessJob;
using ::lockstep::testing::kTinySteps;
using ::lockstep::testing::Number;
using ::lockstep::testing::Sandbox;
using ::lockstep::testing::Stream;
using ::lockstep::testing::TinyJob;
using ::lockstep::testing::WriteJob;
using ::nlohmann::json;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Submits without following; the job's id.
std::string Submit(Sandbox& sandbox, const json& job, int devices) {
  json asked = job;
  asked["resources"]["devices"] = devices;
  const CommandResult submit =
      sandbox.Lockstep({"submit", WriteJob(sandbox.dir(), asked, job["name"]),
                        "--detach", "-o", "name"});
  EXPECT_EQ(submit.code, 0) << submit;
  std::string id = submit.out;
  EXPECT_THAT(id, StartsWith("job/"));
  return std::string(absl::StripAsciiWhitespace(absl::StripPrefix(id, "job/")));
}

CommandResult WaitFor(Sandbox& sandbox, const std::string& id,
                      const std::string& state,
                      const std::string& timeout = "60s") {
  return sandbox.Lockstep(
      {"wait", id, absl::StrCat("--for=", state), "--timeout", timeout});
}

json Job(Sandbox& sandbox, const std::string& id) {
  const CommandResult jobs = sandbox.Lockstep({"get", "jobs", "-o", "json"});
  EXPECT_EQ(jobs.code, 0) << jobs;
  for (const json& job : jobs.Json()) {
    if (job["id"] == id) return job;
  }
  ADD_FAILURE() << "no job " << id << " in " << jobs;
  return json::object();
}

std::vector<json> Steps(Sandbox& sandbox, const std::string& id) {
  const CommandResult steps = sandbox.Lockstep({"get", "steps", id});
  EXPECT_EQ(steps.code, 0) << steps;
  return steps.JsonLines();
}

TEST(ClusterTest, SubmittedJobRunsOverAllWorkersAndIsRemembered) {
  Sandbox sandbox;
  Cluster cluster(sandbox, {.workers = 2});

  const std::string id = Submit(sandbox, TinyJob(sandbox.dir()), 2);
  const CommandResult wait = WaitFor(sandbox, id, "succeeded");
  ASSERT_EQ(wait.code, 0) << wait;

  const json job = Job(sandbox, id);
  EXPECT_EQ(job["name"], "tiny");
  EXPECT_EQ(job["state"], "SUCCEEDED");
  EXPECT_EQ(Number(job["step"]), kTinySteps);
  EXPECT_EQ(Number(job["devices"]), 2);
  EXPECT_THAT(Steps(sandbox, id), SizeIs(kTinySteps));

  const CommandResult workers =
      sandbox.Lockstep({"get", "workers", "-o", "json"});
  ASSERT_EQ(workers.code, 0) << workers;
  EXPECT_THAT(workers.Json(), SizeIs(2)) << workers;
  for (const json& worker : workers.Json()) EXPECT_EQ(worker["state"], "READY");

  const CommandResult events =
      sandbox.Lockstep({"get", "events", id, "-o", "json"});
  ASSERT_EQ(events.code, 0) << events;
  std::vector<std::string> types;
  for (const json& event : events.Json()) types.push_back(event["type"]);
  EXPECT_THAT(types, Contains("submitted"));
  EXPECT_THAT(types, Contains("succeeded"));

  const CommandResult logs = sandbox.Lockstep({"logs", id, "--rank", "1"});
  EXPECT_EQ(logs.code, 0) << logs;
  EXPECT_FALSE(logs.out.empty());
}

TEST(ClusterTest, FollowedSubmitShowsProgressAndEndsWithTheJob) {
  Sandbox sandbox;
  Cluster cluster(sandbox, {.workers = 1});
  const CommandResult submit = sandbox.Lockstep(
      {"submit", WriteJob(sandbox.dir(), TinyJob(sandbox.dir()))});
  EXPECT_EQ(submit.code, 0) << submit;
  EXPECT_THAT(submit.err, HasSubstr("loss"));
}

TEST(ClusterTest, JobWithoutDevicesWaitsAndSaysWhy) {
  Sandbox sandbox;
  Cluster cluster(sandbox, {.workers = 1});
  const std::string id = Submit(sandbox, TinyJob(sandbox.dir()), 2);

  const CommandResult wait = WaitFor(sandbox, id, "succeeded", "1s");
  EXPECT_EQ(wait.code, 5) << wait;
  const json job = Job(sandbox, id);
  EXPECT_EQ(job["state"], "PENDING");
  EXPECT_THAT(std::string(job["reason"]), HasSubstr("2 device"));

  cluster.StartWorker();
  EXPECT_EQ(WaitFor(sandbox, id, "succeeded").code, 0);
}

TEST(ClusterTest, CancelledJobIsGoneFromItsWorkersAndCanBeDeleted) {
  Sandbox sandbox;
  Cluster cluster(sandbox, {.workers = 2});
  const std::string id = Submit(sandbox, EndlessJob(sandbox.dir()), 2);
  ASSERT_EQ(WaitFor(sandbox, id, "running").code, 0);

  const CommandResult early = sandbox.Lockstep({"delete", id});
  EXPECT_EQ(early.code, 2) << early;
  const CommandResult cancel = sandbox.Lockstep({"cancel", id});
  EXPECT_EQ(cancel.code, 0) << cancel;
  EXPECT_EQ(WaitFor(sandbox, id, "cancelled").code, 0);
  EXPECT_EQ(WaitFor(sandbox, id, "succeeded").code, 4);
  // Its devices are free again.
  const std::string next = Submit(sandbox, TinyJob(sandbox.dir()), 2);
  EXPECT_EQ(WaitFor(sandbox, next, "succeeded").code, 0);
  EXPECT_TRUE(sandbox.Running("lockstep-rank").empty());

  const CommandResult deleted = sandbox.Lockstep({"delete", id});
  EXPECT_EQ(deleted.code, 0) << deleted;
  EXPECT_FALSE(
      std::filesystem::exists(sandbox.dir().File(absl::StrCat("jobs/", id))));
  const CommandResult gone = sandbox.Lockstep({"describe", "job", id});
  EXPECT_EQ(gone.code, 2) << gone;
}

TEST(ClusterTest, CancelOfAPendingJobNeedsNoWorker) {
  Sandbox sandbox;
  Cluster cluster(sandbox, {.workers = 0});
  const std::string id = Submit(sandbox, TinyJob(sandbox.dir()), 1);
  EXPECT_EQ(sandbox.Lockstep({"cancel", id}).code, 0);
  EXPECT_EQ(Job(sandbox, id)["state"], "CANCELLED");
}

TEST(ClusterTest, UnknownJobIsExitCode2) {
  Sandbox sandbox;
  Cluster cluster(sandbox, {.workers = 0});
  for (const std::string verb : {"cancel", "delete", "logs", "wait"}) {
    std::vector<std::string> arguments = {verb, "nobody"};
    if (verb == "wait") arguments.push_back("--for=succeeded");
    const CommandResult result = sandbox.Lockstep(arguments);
    EXPECT_EQ(result.code, 2) << verb << ": " << result;
    EXPECT_THAT(result.err, HasSubstr("nobody"));
  }
}

TEST(ClusterTest, CtrlCOfAFollowedSubmitDetaches) {
  Sandbox sandbox;
  Cluster cluster(sandbox, {.workers = 1});
  auto submit = sandbox.Start(
      "lockstep",
      {"submit", WriteJob(sandbox.dir(), EndlessJob(sandbox.dir()))});
  ASSERT_OK(submit->WaitForLine(Stream::kStderr, "loss", absl::Seconds(30)));

  submit->SignalGroup(SIGINT);
  const CommandResult result = Sandbox::Finish(*submit, absl::Seconds(10));

  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.err, HasSubstr("lockstep logs"));
  const CommandResult jobs = sandbox.Lockstep({"get", "jobs", "-o", "json"});
  EXPECT_EQ(jobs.Json()[0]["state"], "RUNNING") << jobs;
}

TEST(ClusterTest, RanksTrainOnWhileTheCoordinatorIsAway) {
  Sandbox sandbox;
  Cluster cluster(sandbox, {.workers = 2});
  json job = TinyJob(sandbox.dir());
  job["train"]["steps"] = 1500;
  job["checkpoint"]["every_steps"] = 500;
  job["resources"]["devices"] = 2;
  auto submit =
      sandbox.Start("lockstep", {"submit", WriteJob(sandbox.dir(), job)});
  ASSERT_OK(submit->WaitForLine(Stream::kStderr, "loss", absl::Seconds(30)));
  const std::string id = std::string(
      sandbox.Lockstep({"get", "jobs", "-o", "json"}).Json()[0]["id"]);
  const auto before = sandbox.Running("lockstep-rank");
  ASSERT_THAT(before, SizeIs(2));

  cluster.KillCoordinator();
  cluster.StartCoordinator();

  // The same attempt goes on, and the one who watches missed nothing.
  const CommandResult followed = Sandbox::Finish(*submit);
  EXPECT_EQ(followed.code, 0) << followed;
  const CommandResult report =
      sandbox.Lockstep({"describe", "job", id, "-o", "json"});
  ASSERT_EQ(report.code, 0) << report;
  EXPECT_EQ(report.Json()["job"]["state"], "SUCCEEDED");
  ASSERT_THAT(report.Json()["attempts"], SizeIs(1)) << report;
  const std::vector<json> steps = Steps(sandbox, id);
  ASSERT_THAT(steps, SizeIs(1500));
  for (int i = 0; i < 1500; ++i) ASSERT_EQ(Number(steps[i]["step"]), i + 1);
}

TEST(ClusterTest, AcknowledgedJobOutlivesTheCoordinator) {
  Sandbox sandbox;
  Cluster cluster(sandbox, {.workers = 0});
  const std::string id = Submit(sandbox, TinyJob(sandbox.dir()), 1);
  cluster.KillCoordinator();
  cluster.StartCoordinator();
  EXPECT_EQ(Job(sandbox, id)["state"], "PENDING");
  cluster.StartWorker();
  EXPECT_EQ(WaitFor(sandbox, id, "succeeded").code, 0);
}

TEST(ClusterTest, DaemonsEndWith0OnSigterm) {
  Sandbox sandbox;
  Cluster cluster(sandbox, {.workers = 1});
  const std::string id = Submit(sandbox, EndlessJob(sandbox.dir()), 1);
  ASSERT_EQ(WaitFor(sandbox, id, "running").code, 0);

  cluster.worker(0).Signal(SIGTERM);
  const CommandResult worker =
      Sandbox::Finish(cluster.worker(0), absl::Seconds(30));
  EXPECT_EQ(worker.code, 0) << worker;
  EXPECT_EQ(WaitFor(sandbox, id, "succeeded").code, 1);
  const CommandResult report =
      sandbox.Lockstep({"describe", "job", id, "-o", "json"});
  EXPECT_EQ(report.Json()["attempts"][0]["cause"], "lost_worker") << report;

  cluster.coordinator().Signal(SIGTERM);
  const CommandResult coordinator =
      Sandbox::Finish(cluster.coordinator(), absl::Seconds(10));
  EXPECT_EQ(coordinator.code, 0) << coordinator;
  EXPECT_OK(sandbox.WaitForNothingLeft(absl::Seconds(5)));
}

}  // namespace
}  // namespace lockstep
