// The same job in several layouts, through the real programs: the losses of
// 50 steps agree, with dropout, with a global batch that 3 and 4 don't divide,
// and with documents of unequal length.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/number.h"
#include "tests/testing/sandbox.h"
#include "tests/testing/tiny_job.h"

namespace lockstep {
namespace {

using ::lockstep::testing::CommandResult;
using ::lockstep::testing::Number;
using ::lockstep::testing::Sandbox;
using ::lockstep::testing::TinyJob;
using ::lockstep::testing::WriteJob;
using ::nlohmann::json;

constexpr int kSteps = 50;

struct LossCase {
  std::string name;
  json optimizer;
};

std::ostream& operator<<(std::ostream& out, const LossCase& c) {
  return out << c.name;
}

struct LossLayout {
  std::string name;
  int ranks;
  std::vector<std::string> keys;
};

class LossParityTest : public ::testing::TestWithParam<LossCase> {
 protected:
  // Loss of each step of the job in a layout.
  std::vector<double> Train(const std::string& job, const LossLayout& layout) {
    const std::string steps = absl::StrCat("steps-", layout.name, ".jsonl");
    std::vector<std::string> command = {
        "run",         job,   "--local", absl::StrCat(layout.ranks),
        "--steps-out", steps, "--dir",   absl::StrCat("state-", layout.name)};
    for (const std::string& key : layout.keys) {
      command.insert(command.end(), {"--set", key});
    }
    const CommandResult run = sandbox_.Lockstep(command);
    EXPECT_EQ(run.code, 0) << run;
    CommandResult lines;
    lines.out = sandbox_.dir().Read(steps);
    std::vector<double> losses;
    for (const json& line : lines.JsonLines()) {
      losses.push_back(Number(line["loss"]));
    }
    return losses;
  }

  Sandbox sandbox_;
};

TEST_P(LossParityTest, EveryStepAgreesWithinOneHundredThousandth) {
  json job = TinyJob(sandbox_.dir());
  job["model"]["dropout"] = 0.1;
  job["train"]["global_batch"] = 10;
  job["train"]["steps"] = kSteps;
  job["train"]["optimizer"] = GetParam().optimizer;
  const std::string file = WriteJob(sandbox_.dir(), job);
  const std::vector<double> alone = Train(file, {"one", 1, {"parallel.dp=1"}});
  ASSERT_EQ(alone.size(), kSteps);
  EXPECT_LT(alone.back(), alone.front() - 0.5);
  const std::vector<LossLayout> layouts = {
      {"dp2", 2, {"parallel.dp=2"}},
      {"dp3", 3, {"parallel.dp=3"}},
      {"dp4", 4, {"parallel.dp=4"}},
      {"zero1", 2, {"parallel.fsdp=2", "parallel.zero_stage=1"}},
      {"zero2", 3, {"parallel.fsdp=3", "parallel.zero_stage=2"}},
      {"zero3", 2, {"parallel.fsdp=2", "parallel.micro_batch=2"}},
      {"hybrid", 4, {"parallel.dp=2", "parallel.fsdp=2"}}};
  for (const LossLayout& layout : layouts) {
    const std::vector<double> losses = Train(file, layout);
    ASSERT_EQ(losses.size(), kSteps);
    double worst = 0.0;
    for (int i = 0; i < kSteps; ++i) {
      worst = std::max(worst, std::abs(losses[i] / alone[i] - 1.0));
    }
    EXPECT_LT(worst, 1e-5) << layout.name;
    RecordProperty(absl::StrCat("worst_of_", layout.name), absl::StrCat(worst));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, LossParityTest,
    ::testing::Values(
        LossCase{"AdamW", {{"name", "adamw"}, {"learning_rate", 1e-3}}},
        LossCase{"Sgd",
                 {{"name", "sgd"}, {"learning_rate", 0.1}, {"momentum", 0.9}}}),
    [](const ::testing::TestParamInfo<LossCase>& c) { return c.param.name; });

}  // namespace
}  // namespace lockstep
