// What is done with a trained model later: on data that have changed, with ids
// that no tokenizer has, on token ids.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
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
using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;

class TrainedModelTest : public ::testing::Test {
 protected:
  TrainedModelTest() : job_(TinyJob(sandbox_.dir())) {
    job_["train"]["steps"] = 2;
  }
  CommandResult Run() {
    return sandbox_.Lockstep(
        {"run", WriteJob(sandbox_.dir(), job_), "--local", "1"});
  }
  CommandResult ResumeTo(int steps) {
    job_["train"]["steps"] = steps;
    return sandbox_.Lockstep({"run", WriteJob(sandbox_.dir(), job_, "more"),
                              "--local", "1", "--resume", "tiny"});
  }

  Sandbox sandbox_;
  json job_;
};

TEST_F(TrainedModelTest, ResumeOnChangedDataIsRefusedByTheirDigests) {
  const CommandResult first = Run();
  ASSERT_EQ(first.code, 0) << first;
  const std::string text = sandbox_.dir().Read("data/train.txt");
  sandbox_.dir().Write("data/train.txt", "something else\n" + text);

  const CommandResult resumed = ResumeTo(4);

  EXPECT_EQ(resumed.code, 1) << resumed;
  EXPECT_THAT(resumed.err, AllOf(HasSubstr("digest"), HasSubstr("train.txt"),
                                 HasSubstr("step-2.g")));
}

TEST_F(TrainedModelTest, ResumeOnTouchedDataGoesOn) {
  const CommandResult first = Run();
  ASSERT_EQ(first.code, 0) << first;
  // The same text, written anew.
  sandbox_.dir().Write("data/train.txt", sandbox_.dir().Read("data/train.txt"));

  const CommandResult resumed = ResumeTo(4);

  EXPECT_EQ(resumed.code, 0) << resumed;
}

TEST_F(TrainedModelTest, GenerateOfAPaddedVocabularyGivesText) {
  job_["model"]["vocabulary"] = 4096;
  const CommandResult run = Run();
  ASSERT_EQ(run.code, 0) << run;

  const CommandResult generated =
      sandbox_.Lockstep({"generate", "tiny", "--prompt", "the king"});

  EXPECT_EQ(generated.code, 0) << generated;
  EXPECT_THAT(generated.out.size(), Gt(20u));
}

TEST_F(TrainedModelTest, ModelOfTokenIdsIsEvaluatedOnOthers) {
  std::string ids;
  for (int i = 0; i < 4000; ++i) {
    ids.push_back(static_cast<char>(i * i % 50));
    ids.push_back('\0');
  }
  sandbox_.dir().Write("data/train.bin", ids);
  sandbox_.dir().Write("data/other.bin", ids.substr(0, 1000));
  job_["data"] = {{"train", {{"path", "train.bin"}}}};
  job_["model"]["vocabulary"] = 50;
  const CommandResult run = Run();
  ASSERT_EQ(run.code, 0) << run;

  const CommandResult evaluated =
      sandbox_.Lockstep({"evaluate", "tiny", "--data",
                         sandbox_.dir().File("data/other.bin"), "-o", "json"});

  ASSERT_EQ(evaluated.code, 0) << evaluated;
  EXPECT_EQ(Number(evaluated.Json()["targets"]), 499);
}

}  // namespace
}  // namespace lockstep
