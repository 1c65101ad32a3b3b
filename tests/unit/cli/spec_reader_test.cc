#include "common/spec/spec_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/statusor.h"
#include "common/spec/nearest_word.h"
#include "lockstep/v1/job.pb.h"
#include "tests/unit/cli/sample_job.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::StatusOr<v1::JobSpec> Read(const std::string& text) {
  v1::JobSpec spec;
  const absl::Status status = ReadSpecText(text, "job.yaml", spec);
  if (!status.ok()) return status;
  return spec;
}

TEST(ReadSpecTextTest, EveryFieldKindIsRead) {
  const auto spec = Read(R"(
name: kjv  # a comment
task: classification
model: {family: gpt2, layers: 2, dropout: 0.1, tied_embeddings: true}
data:
  train: {path: [a.csv, b.csv], label: kind}
  validation: {fraction: 5e-2}
train:
  seed: 18446744073709551615
  optimizer:
    betas: [0.9, 0.95]
parallel: {dp: 2, schedule: 1f1b}
resources: {devices: 2, memory_per_device: 512MiB}
restart: {hang_timeout: 2m}
)");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name(), "kjv");
  EXPECT_EQ(spec->task(), v1::TASK_CLASSIFICATION);
  EXPECT_EQ(spec->model().family(), v1::MODEL_FAMILY_GPT2);
  EXPECT_EQ(spec->model().layers(), 2);
  EXPECT_EQ(spec->model().dropout(), 0.1);
  EXPECT_TRUE(spec->model().tied_embeddings());
  EXPECT_THAT(spec->data().train().path(), ElementsAre("a.csv", "b.csv"));
  EXPECT_EQ(spec->data().validation().fraction(), 0.05);
  EXPECT_EQ(spec->train().seed(), 18446744073709551615u);
  EXPECT_THAT(spec->train().optimizer().betas(), ElementsAre(0.9, 0.95));
  EXPECT_EQ(spec->parallel().schedule(), v1::PIPELINE_SCHEDULE_1F1B);
  EXPECT_EQ(spec->resources().devices().min(), 2);
  EXPECT_EQ(spec->resources().devices().max(), 2);
  EXPECT_EQ(spec->resources().memory_per_device().bytes(), 512u << 20);
  EXPECT_EQ(spec->restart().hang_timeout().seconds(), 120);
}

TEST(ReadSpecTextTest, JsonIsReadToo) {
  const auto spec = Read(
      "{\"name\":\"a\\u0041\\/b\",\n\t\"train\":{\"steps\":\"12\","
      "\"evaluate_every\":null},\"data\":{\"train\":{\"path\":[\"x\"]}},"
      "\"resources\":{\"devices\":{\"min\":1,\"max\":3},"
      "\"memory_per_device\":{\"bytes\":\"7\"}}}");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name(), "aA/b");
  EXPECT_EQ(spec->train().steps(), 12);
  EXPECT_FALSE(spec->train().has_evaluate_every());
  EXPECT_EQ(spec->resources().devices().max(), 3);
  EXPECT_EQ(spec->resources().memory_per_device().bytes(), 7u);
}

TEST(ReadSpecTextTest, AutoIsTheAbsentMessage) {
  EXPECT_FALSE(Read("parallel: auto")->has_parallel());
}

TEST(ReadSpecTextTest, OnePathIsAListOfOne) {
  EXPECT_THAT(Read("data: {train: {path: a.txt}}")->data().train().path(),
              ElementsAre("a.txt"));
}

TEST(ReadSpecTextTest, NothingIsAbsent) {
  EXPECT_FALSE(Read("train: {steps: }")->train().has_steps());
  EXPECT_TRUE(Read("").ok());
  EXPECT_TRUE(Read("# only a comment\n").ok());
}

struct Broken {
  const char* text;
  const char* where;
  const char* what;
};

class BrokenTextTest : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenTextTest, ErrorSaysWhereAndWhat) {
  const auto spec = Read(GetParam().text);
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(spec.status().message()),
              StartsWith(GetParam().where));
  EXPECT_THAT(std::string(spec.status().message()), HasSubstr(GetParam().what));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, BrokenTextTest,
    ::testing::Values(
        Broken{"name: a\ntrain:\n  stpes: 5\n", "job.yaml:3:3: ",
               "unknown key \"stpes\" in train; did you mean \"steps\"?"},
        Broken{"nmae: a", "job.yaml:1:1: ", "did you mean \"name\"?"},
        Broken{"train: {learning_rate: 1}",
               "job.yaml:1:9: ", "train.optimizer.learning_rate"},
        Broken{"action: {}", "job.yaml:1:1: ", "unknown key \"action\""},
        Broken{"name: a\nname: b", "job.yaml:2:1: ", "duplicate key \"name\""},
        Broken{"train: {steps: 1, steps: 2}",
               "job.yaml:1:19: ", "duplicate key \"steps\" in train"},
        Broken{"model:\n  layers: four",
               "job.yaml:2:11: ", "model.layers is \"four\", want an integer"},
        Broken{"model: {layers: 4.5}", "job.yaml:1:17: ", "want an integer"},
        Broken{"model: {layers: [4]}", "job.yaml:1:17: ", "is a list"},
        Broken{"model: {layers: {}}", "job.yaml:1:17: ", "is a mapping"},
        Broken{"model: {layers: 9223372036854775808}",
               "job.yaml:1:17: ", "want an integer"},
        Broken{"train: {seed: -1}", "job.yaml:1:15: ", "want an integer, 0 to"},
        Broken{"model: {dropout: much}", "job.yaml:1:18: ", "want a number"},
        Broken{"model: {tied_embeddings: 1}",
               "job.yaml:1:26: ", "want true or false"},
        Broken{"model: {family: gpt3}",
               "job.yaml:1:17: ", "want one of gpt2, llama"},
        Broken{"model: {family: unspecified}",
               "job.yaml:1:17: ", "want one of gpt2, llama"},
        Broken{"model: big", "job.yaml:1:8: ", "want a mapping"},
        Broken{"- a", "job.yaml:1:1: ", "the file is a list"},
        Broken{"just words", "job.yaml:1:1: ", "want a mapping"},
        Broken{"name: [a]", "job.yaml:1:7: ", "want a text"},
        Broken{"resources: {memory_per_device: lots}",
               "job.yaml:1:32: ", "resources.memory_per_device"},
        Broken{"restart: {hang_timeout: soon}",
               "job.yaml:1:25: ", "restart.hang_timeout"},
        Broken{"restart: {hang_timeout: [1]}",
               "job.yaml:1:25: ", "want a time"},
        Broken{"name: &x a", "job.yaml:1:7: ", "anchors are not allowed"},
        Broken{"name: &x a\ntask: *x", "job.yaml:1:7: ", "not allowed"},
        Broken{"name: !!str a", "job.yaml:1:7: ", "tags are not allowed"},
        Broken{"? [a, b]\n: c", "job.yaml:1:", "a key must be a word"},
        Broken{"name: a\n---\nname: b", "job.yaml:3:1: ", "second document"},
        Broken{"name: 'a", "job.yaml:1:9: ", "EOF"},
        Broken{"train: {steps: 1", "job.yaml:", "end of map"},
        Broken{"name: a\n\tb: c", "job.yaml:2:", ""},
        Broken{"name: a\nx: \xff", "job.yaml:2:4: ", "not UTF-8"}));

TEST(ReadSpecTextTest, ZeroByteIsRefused) {
  EXPECT_THAT(
      std::string(Read(std::string("name: a\0b", 9)).status().message()),
      HasSubstr("job.yaml:1:8: text has a zero byte"));
}

class HostileTextTest : public ::testing::TestWithParam<const char*> {};

// A megabyte of one thing must be refused at once, not after minutes.
TEST_P(HostileTextTest, DeepTextIsRefused) {
  std::string text;
  while (text.size() + 64 < (1u << 20)) text += GetParam();
  const auto spec = Read(text);
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Rows, HostileTextTest,
                         ::testing::Values("[", "{a: ", "- ", "? ", "{", "a:\n",
                                           "[[],", "*a ", "&a ", "!!a "));

TEST(ReadSpecTextTest, NestingDeeperThanTheLimitIsNamed) {
  EXPECT_THAT(
      std::string(
          Read(std::string(33, '[') + std::string(33, ']')).status().message()),
      HasSubstr("job.yaml:1:33: nested deeper than 32"));
}

TEST(ReadSpecTextTest, TextLargerThanTheLimitIsRefused) {
  EXPECT_THAT(
      std::string(Read(std::string((1u << 20) + 1, ' ')).status().message()),
      HasSubstr("has 1048577 bytes"));
}

TEST(SetSpecFieldTest, SetsAndMergesIntoTheSpec) {
  v1::JobSpec spec = testing::SampleJob();
  ASSERT_TRUE(SetSpecField("train.steps=50", spec).ok());
  ASSERT_TRUE(SetSpecField("parallel.dp=2", spec).ok());
  ASSERT_TRUE(SetSpecField("train.optimizer={name: sgd}", spec).ok());
  ASSERT_TRUE(SetSpecField("data.train.path=[a, b]", spec).ok());
  EXPECT_EQ(spec.train().steps(), 50);
  EXPECT_EQ(spec.parallel().dp(), 2);
  EXPECT_EQ(spec.train().optimizer().name(), v1::OPTIMIZER_NAME_SGD);
  EXPECT_EQ(spec.train().optimizer().learning_rate(), 1e-3);
  EXPECT_THAT(spec.data().train().path(), ElementsAre("a", "b"));
}

TEST(SetSpecFieldTest, NullTakesAKeyAway) {
  v1::JobSpec spec = testing::SampleJob();
  ASSERT_TRUE(SetSpecField("train.steps=null", spec).ok());
  EXPECT_FALSE(spec.train().has_steps());
}

class BadAssignmentTest : public ::testing::TestWithParam<Broken> {};

TEST_P(BadAssignmentTest, ErrorNamesTheFlag) {
  v1::JobSpec spec;
  const absl::Status status = SetSpecField(GetParam().text, spec);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), StartsWith(GetParam().where));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().what));
  EXPECT_EQ(spec.ByteSizeLong(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, BadAssignmentTest,
    ::testing::Values(
        Broken{"train.steps", "--set train.steps", "want path.to.key=VALUE"},
        Broken{"=5", "--set =5", "want path.to.key=VALUE"},
        Broken{"train.stpes=5",
               "--set train.stpes: ", "did you mean \"steps\""},
        Broken{"train..steps=5", "--set train..steps: ", "unknown key"},
        Broken{"name.first=5", "--set name.first: ", "no keys of its own"},
        Broken{"action.generate={}", "--set action", "unknown key"},
        Broken{"name=[a", "--set name", "end of sequence"}));

TEST(NearestWordTest, CountsSwapsAsOne) {
  EXPECT_EQ(NearestWord("stpes", {"seed", "steps", "epochs"}), "steps");
  EXPECT_EQ(NearestWord("LAYERS", {"width", "layers"}), "layers");
  EXPECT_EQ(NearestWord("x", {}), "");
}

}  // namespace
}  // namespace lockstep
