#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/cli/run_command_line.h"

namespace lockstep {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RunCommand;
using ::testing::StartsWith;

TEST(CommandLineTest, NothingGivenShowsTheVerbs) {
  const CommandResult result = RunCommand({});
  EXPECT_EQ(result.code, 2) << result;
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr("generate"));
}

TEST(CommandLineTest, HelpGoesToStdout) {
  const CommandResult result = RunCommand({"--help"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("submit"));
  EXPECT_THAT(result.err, IsEmpty());
}

TEST(CommandLineTest, HelpOfAVerbShowsItsFlags) {
  const CommandResult result = RunCommand({"run", "--help"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("--steps-out"));
}

struct BadUsage {
  std::vector<std::string> arguments;
  const char* phrase;
};

class BadUsageTest : public ::testing::TestWithParam<BadUsage> {};

TEST_P(BadUsageTest, IsExitCode2WithOneSentence) {
  const CommandResult result = RunCommand(GetParam().arguments);
  EXPECT_EQ(result.code, 2) << result;
  EXPECT_THAT(result.err, HasSubstr(GetParam().phrase));
  EXPECT_THAT(result.err, StartsWith("lockstep: "));
  EXPECT_THAT(result.out, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Rows, BadUsageTest,
    ::testing::Values(
        BadUsage{{"trian"}, "did you mean"},
        BadUsage{{"get", "jbos"}, "did you mean jobs?"},
        BadUsage{{"get"}, "subcommand"},
        BadUsage{{"run", "a.yaml", "--lokal", "2"}, "did you mean --local?"},
        BadUsage{{"run", "a.yaml", "--lokal=2"}, "--lokal=2"},
        BadUsage{{"run"}, "job"},
        BadUsage{{"run", "a.yaml", "--local", "0"}, "--local"},
        BadUsage{{"run", "a.yaml", "--local", "two"}, "--local"},
        BadUsage{{"run", "a.yaml", "--device", "tpu"}, "--device"},
        BadUsage{{"run", "a.yaml", "--device", "cuda"}, "not built yet"},
        BadUsage{{"run", "a.yaml", "--memory-per-device", "much"},
                 "--memory-per-device"},
        BadUsage{{"run", "a.yaml", "-o", "xml"}, "table, json, yaml"},
        BadUsage{{"run", "a.yaml", "--coordinator", "x:1"}, "submit"},
        BadUsage{{"run", "/nowhere/a.yaml"}, "/nowhere/a.yaml"},
        BadUsage{{"get", "events", "-o", "name"}, "-o is \"name\""},
        BadUsage{{"get", "jobs", "--coordinator", "nonsense"}, "nonsense"},
        BadUsage{{"get", "jobs", "--coordinator", "a:1", "--dir", "d"},
                 "exclude each other"},
        BadUsage{{"plan", "job.yaml", "--what-if", "devices=16"},
                 "not built yet"},
        BadUsage{{"export", "x", "--to", "d"}, "not built yet"},
        BadUsage{{"drain", "w"}, "not built yet"},
        BadUsage{{"data", "audit", "x"}, "not built yet"},
        BadUsage{{"token", "create"}, "not built yet"},
        BadUsage{{"explain", "jobspec.trian"}, "did you mean \"train\"?"},
        BadUsage{{"context", "use", "lab"}, "there is no context \"lab\""}));

TEST(CommandLineTest, VersionNamesTheProgram) {
  const CommandResult result = RunCommand({"version"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, StartsWith("lockstep "));
}

TEST(CommandLineTest, NoClusterAnywhereIsExitCode3AndSaysWhatToDo) {
  const CommandResult result =
      RunCommand({"get", "jobs", "--dir", "/nowhere/at/all"});
  EXPECT_EQ(result.code, 3) << result;
  EXPECT_THAT(result.err, HasSubstr("/nowhere/at/all"));
  EXPECT_THAT(result.err, HasSubstr("LOCKSTEP_COORDINATOR"));
}

TEST(CommandLineTest, UnreachableCoordinatorIsExitCode3WithTheReason) {
  const CommandResult result =
      RunCommand({"get", "jobs"}, {{"LOCKSTEP_COORDINATOR", "127.0.0.1:1"}});
  EXPECT_EQ(result.code, 3) << result;
  EXPECT_THAT(result.err, HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(result.err, HasSubstr("refused"));
}

TEST(CommandLineTest, CompletionKnowsVerbsAndFlags) {
  const CommandResult result = RunCommand({"completion", "bash"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("'get jobs') words='"));
  EXPECT_THAT(result.out, HasSubstr("--steps-out"));
  EXPECT_THAT(result.out, HasSubstr("complete "));
}

}  // namespace
}  // namespace lockstep
