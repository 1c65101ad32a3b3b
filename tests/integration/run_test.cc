// `lockstep run`: a whole cluster in one command.

#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/number.h"
#include "tests/testing/sandbox.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/tiny_job.h"

namespace lockstep {
namespace {

using ::lockstep::testing::CommandResult;
using ::lockstep::testing::EndlessJob;
using ::lockstep::testing::kTinySteps;
using ::lockstep::testing::Number;
using ::lockstep::testing::Sandbox;
using ::lockstep::testing::Stream;
using ::lockstep::testing::TinyClassifier;
using ::lockstep::testing::TinyJob;
using ::lockstep::testing::WriteJob;
using ::nlohmann::json;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::Not;
using ::testing::SizeIs;

constexpr absl::Duration kEndTimeout = absl::Seconds(10);

// Steps of a --steps-out file.
std::vector<json> Steps(const Sandbox& sandbox, const std::string& file) {
  CommandResult lines;
  lines.out = sandbox.dir().Read(file);
  return lines.JsonLines();
}

std::vector<double> Losses(const std::vector<json>& steps) {
  std::vector<double> losses;
  for (const json& step : steps) losses.push_back(Number(step["loss"]));
  return losses;
}

TEST(RunTest, TwoWorkersTrainAndReport) {
  Sandbox sandbox;
  const std::string job = WriteJob(sandbox.dir(), TinyJob(sandbox.dir()));

  const CommandResult run = sandbox.Lockstep(
      {"run", job, "--local", "2", "--steps-out", "steps.jsonl", "-o", "json"});

  ASSERT_EQ(run.code, 0) << run;
  const json report = run.Json();
  ASSERT_TRUE(report.is_object()) << run;
  EXPECT_EQ(report["job"]["name"], "tiny");
  EXPECT_EQ(report["job"]["state"], "SUCCEEDED");
  EXPECT_EQ(Number(report["layout"]["dp"]), 2);
  EXPECT_EQ(Number(report["layout"]["micro_batch"]), 4);
  EXPECT_EQ(Number(report["progress"]["step"]), kTinySteps);
  EXPECT_EQ(Number(report["progress"]["steps"]), kTinySteps);
  EXPECT_EQ(Number(report["progress"]["samples"]), 8 * kTinySteps);
  EXPECT_THAT(Number(report["metrics"]["validation_bits_per_byte"]),
              AllOf(Gt(0.5), Lt(8.0)));
  EXPECT_THAT(Number(report["speed"]["tokens_per_second"]), Gt(0.0));
  ASSERT_THAT(report["memory"], SizeIs(2));
  for (const json& memory : report["memory"]) {
    EXPECT_THAT(Number(memory["peak_bytes"]), Gt(0.0));
    EXPECT_THAT(Number(memory["peak_bytes"]),
                Lt(Number(memory["process_peak_bytes"])));
    EXPECT_THAT(Number(memory["predicted_peak_bytes"]),
                DoubleNear(Number(memory["peak_bytes"]),
                           0.25 * Number(memory["peak_bytes"])));
  }
  ASSERT_THAT(report["attempts"], SizeIs(1));
  EXPECT_EQ(report["attempts"][0]["outcome"], "succeeded");
  EXPECT_EQ(Number(report["checkpoint"]["step"]), kTinySteps);
  EXPECT_TRUE(
      std::filesystem::is_directory(std::string(report["checkpoint"]["path"])));
  EXPECT_OK(sandbox.WaitForNothingLeft(kEndTimeout));
}

TEST(RunTest, StepsOutHasALinePerStepAndTheLossFalls) {
  Sandbox sandbox;
  const std::string job = WriteJob(sandbox.dir(), TinyJob(sandbox.dir()));

  const CommandResult run = sandbox.Lockstep(
      {"run", job, "--local", "2", "--steps-out", "steps.jsonl"});

  ASSERT_EQ(run.code, 0) << run;
  const std::vector<json> steps = Steps(sandbox, "steps.jsonl");
  ASSERT_THAT(steps, SizeIs(kTinySteps));
  for (int i = 0; i < kTinySteps; ++i) {
    EXPECT_EQ(Number(steps[i]["step"]), i + 1);
    EXPECT_EQ(Number(steps[i]["tokens"]), 8 * 32);
    EXPECT_THAT(Number(steps[i]["grad_norm"]), Gt(0.0));
    EXPECT_THAT(Number(steps[i]["learning_rate"]), DoubleNear(0.01, 1e-9));
    EXPECT_THAT(Number(steps[i]["seconds"]), Gt(0.0));
  }
  EXPECT_THAT(Losses(steps).back(), Lt(Losses(steps).front() - 1.0));
}

TEST(RunTest, OneLayoutTwiceGivesTheSameBits) {
  Sandbox sandbox;
  json job = TinyJob(sandbox.dir());
  job["model"]["dropout"] = 0.1;
  const std::string file = WriteJob(sandbox.dir(), job);
  std::vector<std::vector<double>> losses;
  for (const std::string name : {"a", "b"}) {
    const CommandResult run =
        sandbox.Lockstep({"run", file, "--local", "2", "--steps-out", name,
                          "--dir", "state-" + name});
    ASSERT_EQ(run.code, 0) << run;
    losses.push_back(Losses(Steps(sandbox, name)));
  }
  ASSERT_THAT(losses[0], SizeIs(kTinySteps));
  EXPECT_EQ(losses[0], losses[1]);
}

TEST(RunTest, LayoutDoesNotChangeTheLosses) {
  Sandbox sandbox;
  json job = TinyJob(sandbox.dir());
  job["model"]["dropout"] = 0.1;
  const std::string file = WriteJob(sandbox.dir(), job);
  std::vector<double> alone;
  for (const int ranks : {1, 3}) {  // 8 sequences don't divide by 3
    const std::string name = absl::StrCat("dp", ranks);
    const CommandResult run = sandbox.Lockstep(
        {"run", file, "--local", absl::StrCat(ranks), "--set",
         absl::StrCat("parallel.dp=", ranks), "--steps-out", name});
    ASSERT_EQ(run.code, 0) << run;
    const std::vector<double> losses = Losses(Steps(sandbox, name));
    ASSERT_THAT(losses, SizeIs(kTinySteps));
    if (alone.empty()) alone = losses;
    for (int i = 0; i < kTinySteps; ++i) {
      EXPECT_THAT(losses[i], DoubleNear(alone[i], 1e-5 * alone[i]))
          << name << ", step " << i + 1;
    }
  }
}

TEST(RunTest, ClassifierReportsAccuracy) {
  Sandbox sandbox;
  const std::string job =
      WriteJob(sandbox.dir(), TinyClassifier(sandbox.dir()));

  const CommandResult run =
      sandbox.Lockstep({"run", job, "--local", "2", "-o", "json"});

  ASSERT_EQ(run.code, 0) << run;
  EXPECT_THAT(Number(run.Json()["metrics"]["validation_accuracy"]),
              AllOf(Gt(0.6), Lt(1.0001)))
      << run;
}

TEST(RunTest, ResumedJobGoesOnWithTheSameLosses) {
  Sandbox sandbox;
  json job = TinyJob(sandbox.dir());
  job["model"]["dropout"] = 0.1;
  const std::string whole = WriteJob(sandbox.dir(), job, "whole");
  job["name"] = "half";
  job["train"]["steps"] = kTinySteps / 2;
  const std::string half = WriteJob(sandbox.dir(), job, "half");

  const CommandResult at_once =
      sandbox.Lockstep({"run", whole, "--local", "2", "--steps-out", "whole"});
  ASSERT_EQ(at_once.code, 0) << at_once;
  const CommandResult first = sandbox.Lockstep({"run", half, "--local", "2"});
  ASSERT_EQ(first.code, 0) << first;
  const CommandResult rest =
      sandbox.Lockstep({"run", whole, "--local", "2", "--resume", "half",
                        "--steps-out", "rest"});
  ASSERT_EQ(rest.code, 0) << rest;

  std::vector<double> expected = Losses(Steps(sandbox, "whole"));
  expected.erase(expected.begin(), expected.begin() + kTinySteps / 2);
  EXPECT_EQ(Losses(Steps(sandbox, "rest")), expected);
  EXPECT_EQ(Number(Steps(sandbox, "rest").front()["step"]), kTinySteps / 2 + 1);
}

TEST(RunTest, ResumeOfAnotherModelIsRefusedByItsFirstDifference) {
  Sandbox sandbox;
  json job = TinyJob(sandbox.dir());
  job["train"]["steps"] = 2;
  const CommandResult first =
      sandbox.Lockstep({"run", WriteJob(sandbox.dir(), job), "--local", "1"});
  ASSERT_EQ(first.code, 0) << first;

  job["model"]["layers"] = 3;
  const CommandResult resumed =
      sandbox.Lockstep({"run", WriteJob(sandbox.dir(), job, "deeper"),
                        "--local", "1", "--resume", "tiny"});

  EXPECT_EQ(resumed.code, 2) << resumed;
  EXPECT_THAT(resumed.err, HasSubstr("model.layers"));
  EXPECT_OK(sandbox.WaitForNothingLeft(kEndTimeout));
}

TEST(RunTest, SecondRunInTheSameFolderIsRefusedWithThePid) {
  Sandbox sandbox;
  const std::string job = WriteJob(sandbox.dir(), EndlessJob(sandbox.dir()));
  auto first = sandbox.Start(
      "lockstep", {"run", job, "--local", "1", "--steps-out", "steps.jsonl"});
  ASSERT_OK(first->WaitForLine(Stream::kStderr, "loss", absl::Seconds(30)));

  const CommandResult second = sandbox.Lockstep({"run", job, "--local", "1"});

  EXPECT_EQ(second.code, 2) << second;
  EXPECT_THAT(second.err, HasSubstr(absl::StrCat(first->pid())));
}

TEST(RunTest, LaterCommandsFindTheLocalClusterAgain) {
  Sandbox sandbox;
  const std::string job = WriteJob(sandbox.dir(), TinyJob(sandbox.dir()));
  const CommandResult run = sandbox.Lockstep({"run", job, "--local", "2"});
  ASSERT_EQ(run.code, 0) << run;

  const CommandResult jobs = sandbox.Lockstep({"get", "jobs", "-o", "json"});
  ASSERT_EQ(jobs.code, 0) << jobs;
  ASSERT_THAT(jobs.Json(), SizeIs(1)) << jobs;
  EXPECT_EQ(jobs.Json()[0]["state"], "SUCCEEDED");

  const CommandResult report =
      sandbox.Lockstep({"describe", "job", "tiny", "-o", "json"});
  ASSERT_EQ(report.code, 0) << report;
  EXPECT_EQ(Number(report.Json()["progress"]["step"]), kTinySteps);

  const CommandResult steps = sandbox.Lockstep({"get", "steps", "tiny"});
  ASSERT_EQ(steps.code, 0) << steps;
  EXPECT_THAT(steps.JsonLines(), SizeIs(kTinySteps));

  const CommandResult checkpoints =
      sandbox.Lockstep({"get", "checkpoints", "tiny", "-o", "json"});
  ASSERT_EQ(checkpoints.code, 0) << checkpoints;
  ASSERT_THAT(checkpoints.Json(), SizeIs(2)) << checkpoints;
  EXPECT_EQ(Number(checkpoints.Json()[0]["step"]), kTinySteps);
}

TEST(RunTest, GenerateContinuesAPromptAlikeForOneSeed) {
  Sandbox sandbox;
  const std::string job = WriteJob(sandbox.dir(), TinyJob(sandbox.dir()));
  const CommandResult run = sandbox.Lockstep({"run", job, "--local", "2"});
  ASSERT_EQ(run.code, 0) << run;

  std::set<std::string> texts;
  for (int i = 0; i < 2; ++i) {
    const CommandResult generated =
        sandbox.Lockstep({"generate", "tiny", "--prompt", "the king"});
    ASSERT_EQ(generated.code, 0) << generated;
    EXPECT_THAT(generated.out, HasSubstr("the king"));
    EXPECT_THAT(generated.out.size(), Gt(20u));
    texts.insert(generated.out);
  }
  EXPECT_THAT(texts, SizeIs(1));
  // Nothing stays behind but what a later command would use again; the jobs of
  // actions are hidden.
  const CommandResult jobs = sandbox.Lockstep({"get", "jobs", "-o", "json"});
  EXPECT_THAT(jobs.Json(), SizeIs(1)) << jobs;
}

TEST(RunTest, EvaluateAgreesWithTheRunsOwnValidation) {
  Sandbox sandbox;
  json job = TinyJob(sandbox.dir());
  sandbox.dir().Write("data/held_out.txt", "the people remembered day 3.\n");
  job["data"]["validation"] = {{"path", "held_out.txt"}};
  const CommandResult run = sandbox.Lockstep(
      {"run", WriteJob(sandbox.dir(), job), "--local", "2", "-o", "json"});
  ASSERT_EQ(run.code, 0) << run;

  const CommandResult evaluated =
      sandbox.Lockstep({"evaluate", "tiny", "--data",
                        sandbox.dir().File("data/held_out.txt"), "-o", "json"});

  ASSERT_EQ(evaluated.code, 0) << evaluated;
  const double expected =
      Number(run.Json()["metrics"]["validation_bits_per_byte"]);
  EXPECT_THAT(Number(evaluated.Json()["bits_per_byte"]),
              DoubleNear(expected, 1e-6 * expected))
      << evaluated;
}

}  // namespace
}  // namespace lockstep
