// Ctrl-C of `run`, at any point: exit code 4 and nothing left.

#include <signal.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/sandbox.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/tiny_job.h"

namespace lockstep {
namespace {

using ::lockstep::testing::CommandResult;
using ::lockstep::testing::EndlessJob;
using ::lockstep::testing::IsFullTest;
using ::lockstep::testing::Sandbox;
using ::lockstep::testing::Stream;
using ::lockstep::testing::TinyJob;
using ::lockstep::testing::WriteJob;
using ::nlohmann::json;
using ::testing::AnyOf;

struct Moment {
  const char* name;
  // Line of stderr to wait for.
  const char* line;
};

class CancelTest : public ::testing::TestWithParam<Moment> {};

TEST_P(CancelTest, EndsWith4AndLeavesNothing) {
  Sandbox sandbox;
  const std::string job = WriteJob(sandbox.dir(), EndlessJob(sandbox.dir()));
  auto run = sandbox.Start("lockstep", {"run", job, "--local", "2"});
  ASSERT_OK(
      run->WaitForLine(Stream::kStderr, GetParam().line, absl::Seconds(30)));

  run->SignalGroup(SIGINT);

  const CommandResult result = Sandbox::Finish(*run, absl::Seconds(20));
  EXPECT_EQ(result.code, 4) << result;
  EXPECT_OK(sandbox.WaitForNothingLeft(absl::Seconds(5)));
}

INSTANTIATE_TEST_SUITE_P(
    Moments, CancelTest,
    ::testing::Values(Moment{"WhileDaemonsStart", "starting a coordinator"},
                      Moment{"WhileRanksStart", "STARTING"},
                      Moment{"WhileTraining", "loss"}),
    [](const ::testing::TestParamInfo<Moment>& info) {
      return info.param.name;
    });

// A job that ends by itself after about a second, interrupted every so often on
// the way: it was either cancelled or done, and leaves nothing.
TEST(CancelSweepTest, NoMomentLeavesAnythingBehind) {
  const int moments = IsFullTest() ? 30 : 6;
  for (int i = 0; i < moments; ++i) {
    Sandbox sandbox;
    json job = TinyJob(sandbox.dir());
    job["train"]["steps"] = 200;
    auto run = sandbox.Start(
        "lockstep", {"run", WriteJob(sandbox.dir(), job), "--local", "2"});
    // Waits that long, unless it ends before.
    const absl::Duration delay = absl::Milliseconds(1800) * i / moments;
    run->WaitForExit(delay).IgnoreError();

    run->SignalGroup(SIGINT);

    const CommandResult result = Sandbox::Finish(*run, absl::Seconds(20));
    // Before main has begun, the signal ends the process at once.
    EXPECT_THAT(result.code, AnyOf(0, 4, 128 + SIGINT))
        << "after " << delay << ": " << result;
    EXPECT_OK(sandbox.WaitForNothingLeft(absl::Seconds(5)))
        << "after " << delay << ": " << result;
  }
}

TEST(CancelSweepTest, CancelledFolderIsUsableAgain) {
  Sandbox sandbox;
  auto run = sandbox.Start(
      "lockstep", {"run", WriteJob(sandbox.dir(), EndlessJob(sandbox.dir())),
                   "--local", "2"});
  ASSERT_OK(run->WaitForLine(Stream::kStderr, "loss", absl::Seconds(30)));
  run->SignalGroup(SIGINT);
  ASSERT_EQ(Sandbox::Finish(*run, absl::Seconds(20)).code, 4);

  const CommandResult jobs = sandbox.Lockstep({"get", "jobs", "-o", "json"});
  ASSERT_EQ(jobs.code, 0) << jobs;
  EXPECT_EQ(jobs.Json()[0]["state"], "CANCELLED") << jobs;
  const CommandResult next = sandbox.Lockstep(
      {"run", WriteJob(sandbox.dir(), TinyJob(sandbox.dir())), "--local", "2"});
  EXPECT_EQ(next.code, 0) << next;
}

}  // namespace
}  // namespace lockstep
