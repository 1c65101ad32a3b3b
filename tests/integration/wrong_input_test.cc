// Wrong input: a clear message, the right exit code and nothing left running.

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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
using ::lockstep::testing::Sandbox;
using ::lockstep::testing::Stream;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::TinyClassifier;
using ::lockstep::testing::TinyJob;
using ::lockstep::testing::WriteJob;
using ::nlohmann::json;
using ::testing::HasSubstr;

constexpr absl::Duration kEndTimeout = absl::Seconds(10);

struct WrongJob {
  std::string name;
  // Makes the job wrong, and the files it names.
  std::function<void(const TempDir&, json&)> spoil;
  int code = 2;
  std::vector<std::string> phrases;
  std::vector<std::string> arguments = {};
};

void PrintTo(const WrongJob& wrong, std::ostream* os) { *os << wrong.name; }

class WrongJobTest : public ::testing::TestWithParam<WrongJob> {};

TEST_P(WrongJobTest, IsRefused) {
  const WrongJob& wrong = GetParam();
  Sandbox sandbox;
  json job = TinyJob(sandbox.dir());
  wrong.spoil(sandbox.dir(), job);
  std::vector<std::string> arguments = {"run", WriteJob(sandbox.dir(), job),
                                        "--local", "2"};
  arguments.insert(arguments.end(), wrong.arguments.begin(),
                   wrong.arguments.end());

  const CommandResult run = sandbox.Lockstep(arguments);

  EXPECT_EQ(run.code, wrong.code) << run;
  for (const std::string& phrase : wrong.phrases) {
    EXPECT_THAT(run.err, HasSubstr(phrase));
  }
  EXPECT_OK(sandbox.WaitForNothingLeft(kEndTimeout));
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, WrongJobTest,
    ::testing::ValuesIn(std::vector<WrongJob>{
        {"UnknownKey",
         [](const TempDir&, json& job) { job["train"]["step"] = 5; },
         2,
         {"job.json:", "step", "steps"}},
        {"WrongType",
         [](const TempDir&, json& job) { job["train"]["steps"] = "many"; },
         2,
         {"job.json:", "many"}},
        {"NegativeSize",
         [](const TempDir&, json& job) { job["model"]["width"] = -32; },
         2,
         {"model.width", "-32"}},
        {"HeadsNotDividingWidth",
         [](const TempDir&, json& job) { job["model"]["heads"] = 5; },
         2,
         {"heads", "5", "32"}},
        {"GlobalBatchOfZero",
         [](const TempDir&, json& job) { job["train"]["global_batch"] = 0; },
         2,
         {"train.global_batch"}},
        {"NoLearningRate",
         [](const TempDir&, json& job) { job["train"].erase("optimizer"); },
         2,
         {"learning_rate"}},
        {"NotBuiltYet",
         [](const TempDir&, json& job) {
           job["model"] = {{"from", "a-folder"}};
         },
         2,
         {"model.from", "not built yet"}},
        {"MissingFile",
         [](const TempDir&, json& job) {
           job["data"]["train"]["path"] = "nowhere.txt";
         },
         2,
         {"nowhere.txt"}},
        {"EmptyFile",
         [](const TempDir& dir, json& job) {
           dir.Write("data/empty.txt", "");
           job["data"]["train"]["path"] = "empty.txt";
         },
         2,
         {"empty.txt", "empty"}},
        {"BrokenJsonlLine",
         [](const TempDir& dir, json& job) {
           dir.Write("data/broken.jsonl",
                     "{\"text\": \"good\"}\n{\"text\": \"bad\n");
           job["data"]["train"]["path"] = "broken.jsonl";
           job["data"].erase("validation");
         },
         1,
         {"broken.jsonl:2"}},
        {"AbsentLabelColumn",
         [](const TempDir& dir, json& job) {
           job = TinyClassifier(dir);
           job["data"]["train"]["label"] = "testament";
         },
         1,
         {"testament"}},
        {"MoreRanksThanLocalDevices",
         [](const TempDir&, json& job) { job["parallel"]["dp"] = 3; },
         2,
         {"3", "2"}},
        {"SequenceLongerThanTheData",
         [](const TempDir& dir, json& job) {
           dir.Write("data/short.txt", "In the beginning\n");
           job["data"]["train"]["path"] = "short.txt";
           job["data"].erase("validation");
         },
         1,
         {"32"}},
        {"NoMemory",
         [](const TempDir&, json&) {},
         2,
         {"KiB"},
         {"--memory-per-device", "64KiB"}},
        {"LossNotFinite",
         [](const TempDir&, json& job) {
           job["train"]["optimizer"] = {{"name", "sgd"},
                                        {"learning_rate", 1e30}};
         },
         1,
         {"step"}},
        {"BadSetting",
         [](const TempDir&, json&) {},
         2,
         {"train.stpes", "steps"},
         {"--set", "train.stpes=3"}},
        {"UnknownFlag",
         [](const TempDir&, json&) {},
         2,
         {"--lokal"},
         {"--lokal"}},
    }),
    [](const ::testing::TestParamInfo<WrongJob>& info) {
      return info.param.name;
    });

TEST(WrongInputTest, UnreachableCoordinatorIsExitCode3) {
  Sandbox sandbox;
  const CommandResult get =
      sandbox.Lockstep({"get", "jobs", "--coordinator", "127.0.0.1:1"});
  EXPECT_EQ(get.code, 3) << get;
  EXPECT_THAT(get.err, HasSubstr("127.0.0.1:1"));
}

TEST(WrongInputTest, MissingJobFileIsNamed) {
  Sandbox sandbox;
  const CommandResult run =
      sandbox.Lockstep({"run", "absent.yaml", "--local", "1"});
  EXPECT_EQ(run.code, 2) << run;
  EXPECT_THAT(run.err, HasSubstr("absent.yaml"));
}

TEST(WrongInputTest, BrokenYamlIsNamedWithItsLine) {
  Sandbox sandbox;
  sandbox.dir().Write("job.yaml", "name: x\nmodel: {layers: 2\n");
  const CommandResult run =
      sandbox.Lockstep({"run", "job.yaml", "--local", "1"});
  EXPECT_EQ(run.code, 2) << run;
  EXPECT_THAT(run.err, HasSubstr("job.yaml:"));
}

TEST(WrongInputTest, UnknownVerbIsBadUsage) {
  Sandbox sandbox;
  const CommandResult result = sandbox.Lockstep({"trian"});
  EXPECT_EQ(result.code, 2) << result;
}

TEST(WrongInputTest, PortInUseEndsTheCoordinatorWith2) {
  Sandbox sandbox;
  const std::string root = sandbox.dir().File("jobs");
  std::filesystem::create_directories(root);
  const auto arguments = [&](const std::string& address,
                             const std::string& store) {
    return std::vector<std::string>{
        "--listen",   address,
        "--store",    absl::StrCat("sqlite:", sandbox.dir().File(store)),
        "--job-root", root};
  };
  auto first =
      sandbox.Start("lockstep-coordinator", arguments("127.0.0.1:0", "a.db"));
  const std::string phrase = "grpc listening on ";
  ASSERT_OK_AND_ASSIGN(
      const std::string line,
      first->WaitForLine(Stream::kStderr, phrase, absl::Seconds(20)));
  const std::string address = line.substr(line.find(phrase) + phrase.size());

  auto second =
      sandbox.Start("lockstep-coordinator", arguments(address, "b.db"));
  const CommandResult result = Sandbox::Finish(*second, absl::Seconds(20));

  EXPECT_EQ(result.code, 2) << result;
  EXPECT_THAT(result.err, HasSubstr(address));
}

TEST(WrongInputTest, LockedStoreEndsTheCoordinatorWith2) {
  Sandbox sandbox;
  const std::string root = sandbox.dir().File("jobs");
  std::filesystem::create_directories(root);
  const std::vector<std::string> arguments = {
      "--listen",   "127.0.0.1:0",
      "--store",    absl::StrCat("sqlite:", sandbox.dir().File("a.db")),
      "--job-root", root};
  auto first = sandbox.Start("lockstep-coordinator", arguments);
  ASSERT_OK(first->WaitForLine(Stream::kStderr, "grpc listening on",
                               absl::Seconds(20)));

  auto second = sandbox.Start("lockstep-coordinator", arguments);
  const CommandResult result = Sandbox::Finish(*second, absl::Seconds(20));

  EXPECT_EQ(result.code, 2) << result;
  EXPECT_THAT(result.err, HasSubstr("a.db"));
}

TEST(WrongInputTest, DamagedCheckpointFailsTheJobThatReadsIt) {
  Sandbox sandbox;
  json job = TinyJob(sandbox.dir());
  job["train"]["steps"] = 2;
  const std::string file = WriteJob(sandbox.dir(), job);
  const CommandResult run =
      sandbox.Lockstep({"run", file, "--local", "1", "-o", "json"});
  ASSERT_EQ(run.code, 0) << run;
  const std::string checkpoint = run.Json()["checkpoint"]["path"];
  bool damaged = false;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    if (entry.path().extension() != ".safetensors") continue;
    std::filesystem::resize_file(entry.path(),
                                 std::filesystem::file_size(entry) / 2);
    damaged = true;
  }
  ASSERT_TRUE(damaged) << checkpoint;

  job["train"]["steps"] = 4;
  const CommandResult resumed =
      sandbox.Lockstep({"run", WriteJob(sandbox.dir(), job, "longer"),
                        "--local", "1", "--resume", "tiny"});

  EXPECT_EQ(resumed.code, 1) << resumed;
  EXPECT_THAT(resumed.err, HasSubstr(".safetensors"));
  EXPECT_OK(sandbox.WaitForNothingLeft(kEndTimeout));
}

}  // namespace
}  // namespace lockstep
