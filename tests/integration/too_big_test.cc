// The reason for sharding: a model whose replica doesn't fit a device trains
// all the same, and generates, evaluates and goes on in other layouts.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/number.h"
#include "tests/testing/sandbox.h"
#include "tests/testing/tiny_job.h"

namespace lockstep {
namespace {

using ::lockstep::testing::CommandResult;
using ::lockstep::testing::kTinySteps;
using ::lockstep::testing::Number;
using ::lockstep::testing::Sandbox;
using ::lockstep::testing::TinyJob;
using ::lockstep::testing::WriteJob;
using ::nlohmann::json;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> RunCommand(const std::string& job, int devices,
                                    const std::vector<std::string>& keys) {
  std::vector<std::string> command = {
      "run",         job,           "--local", absl::StrCat(devices),
      "--steps-out", "steps.jsonl", "-o",      "json"};
  for (const std::string& key : keys) {
    command.insert(command.end(), {"--set", key});
  }
  return command;
}

std::vector<double> Losses(const Sandbox& sandbox) {
  CommandResult lines;
  lines.out = sandbox.dir().Read("steps.jsonl");
  std::vector<double> losses;
  for (const json& line : lines.JsonLines()) {
    losses.push_back(Number(line["loss"]));
  }
  return losses;
}

double Predicted(const CommandResult& run) {
  return Number(run.Json()["memory"][0]["predicted_peak_bytes"]);
}

TEST(TooBigTest, AReplicaDoesNotFitAndItsShardsDo) {
  Sandbox sandbox;
  json job = TinyJob(sandbox.dir());
  job["model"]["layers"] = 6;
  job["model"]["dropout"] = 0.1;
  // Roundings grow from step to step, the faster the larger the steps are.
  job["train"]["optimizer"]["learning_rate"] = 0.003;
  const std::string file = WriteJob(sandbox.dir(), job);
  const std::string micro = "parallel.micro_batch=1";

  // On one big device, and what each way needs.
  const CommandResult one = sandbox.Lockstep(RunCommand(file, 1, {micro}));
  ASSERT_EQ(one.code, 0) << one;
  const std::vector<double> want = Losses(sandbox);
  ASSERT_THAT(want, SizeIs(kTinySteps));
  const CommandResult free =
      sandbox.Lockstep(RunCommand(file, 2, {micro, "parallel.fsdp=2"}));
  ASSERT_EQ(free.code, 0) << free;
  ASSERT_LT(Predicted(free), 0.9 * Predicted(one));
  const std::string limit = absl::StrCat(
      "resources.memory_per_device=",
      static_cast<int64_t>((Predicted(one) + Predicted(free)) / 2), "B");

  const CommandResult refused =
      sandbox.Lockstep(RunCommand(file, 2, {micro, "parallel.dp=2", limit}));
  EXPECT_EQ(refused.code, 2) << refused;
  EXPECT_THAT(refused.err, HasSubstr("no layout fits"));
  EXPECT_THAT(refused.err, HasSubstr("parallel {fsdp: 2"));

  const std::vector<std::pair<int, std::vector<std::string>>> ways = {
      {2, {"parallel.fsdp=2"}},
      {2, {"parallel.tp=2"}},
      {2, {"parallel.pp=2"}},
      {4, {"parallel.pp=2", "parallel.tp=2", "parallel.schedule=zero_bubble"}}};
  for (const auto& [devices, axes] : ways) {
    std::vector<std::string> keys = axes;
    keys.insert(keys.end(), {micro, limit});
    SCOPED_TRACE(axes.front());
    const CommandResult run = sandbox.Lockstep(RunCommand(file, devices, keys));
    ASSERT_EQ(run.code, 0) << run;
    const std::vector<double> losses = Losses(sandbox);
    ASSERT_THAT(losses, SizeIs(kTinySteps));
    for (int i = 0; i < kTinySteps; ++i) {
      EXPECT_THAT(losses[i], DoubleNear(want[i], 1e-5 * want[i]))
          << "step " << i;
    }
  }
}

struct SplitJob {
  std::string name;
  int devices;
  std::vector<std::string> axes;
};

class SplitJobTest : public ::testing::TestWithParam<SplitJob> {};

INSTANTIATE_TEST_SUITE_P(
    Layouts, SplitJobTest,
    ::testing::Values(
        SplitJob{"Fsdp", 3, {"parallel.fsdp=3"}},
        SplitJob{"Tensor", 2, {"parallel.tp=2"}},
        SplitJob{"Pipeline", 3, {"parallel.pp=3"}},
        SplitJob{"Ring", 2, {"parallel.cp=2"}},
        SplitJob{"Ulysses", 2, {"parallel.cp=2", "parallel.cp_kind=ulysses"}},
        SplitJob{"Mix", 4, {"parallel.pp=2", "parallel.fsdp=2"}}),
    [](const ::testing::TestParamInfo<SplitJob>& job) {
      return job.param.name;
    });

TEST_P(SplitJobTest, GeneratesEvaluatesAndResumesElsewhere) {
  Sandbox sandbox;
  const std::string file = WriteJob(sandbox.dir(), TinyJob(sandbox.dir()));
  const CommandResult run =
      sandbox.Lockstep(RunCommand(file, GetParam().devices, GetParam().axes));
  ASSERT_EQ(run.code, 0) << run;
  const double bits = Number(run.Json()["metrics"]["validation_bits_per_byte"]);

  const CommandResult text = sandbox.Lockstep(
      {"generate", "tiny", "--prompt", "a", "--max-tokens", "8"});
  EXPECT_EQ(text.code, 0) << text;
  const CommandResult evaluation =
      sandbox.Lockstep({"evaluate", "tiny", "-o", "json"});
  ASSERT_EQ(evaluation.code, 0) << evaluation;
  EXPECT_THAT(Number(evaluation.Json()["bits_per_byte"]),
              DoubleNear(bits, 1e-6 * bits));

  const CommandResult resumed = sandbox.Lockstep(
      {"run", file, "--local", "2", "--resume", "tiny", "--set",
       "parallel.dp=2", "--set", absl::StrCat("train.steps=", 2 * kTinySteps),
       "--steps-out", "more.jsonl"});
  EXPECT_EQ(resumed.code, 0) << resumed;
  CommandResult lines;
  lines.out = sandbox.dir().Read("more.jsonl");
  EXPECT_THAT(lines.JsonLines(), SizeIs(kTinySteps));
}

}  // namespace
}  // namespace lockstep
