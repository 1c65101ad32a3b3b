// The small parts of the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/cluster_file.h"
#include "cli/contexts.h"
#include "cli/daemon_process.h"
#include "cli/exit_code.h"
#include "cli/field_docs.h"
#include "cli/interrupt_handler.h"
#include "cli/job_file.h"
#include "cli/number_text.h"
#include "cli/steps_file.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/cli/run_command_line.h"
#include "tests/unit/cli/sample_job.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::RunCommand;
using testing::SampleJob;
using testing::StatusIs;
using testing::TempDir;

TEST(NumberTextTest, CountsAndTimesAreShort) {
  EXPECT_EQ(ShortCount(0), "0");
  EXPECT_EQ(ShortCount(999), "999");
  EXPECT_EQ(ShortCount(999.7), "1.00k");
  EXPECT_EQ(ShortCount(12'345), "12.3k");
  EXPECT_EQ(ShortCount(4'560'000), "4.56M");
  EXPECT_EQ(GroupedCount(7), "7");
  EXPECT_EQ(GroupedCount(-1234), "-1,234");
  EXPECT_EQ(GroupedCount(1234567), "1,234,567");
  EXPECT_EQ(ShortDuration(absl::Seconds(-1)), "0s");
  EXPECT_EQ(ShortDuration(absl::Seconds(62)), "1m02s");
  EXPECT_EQ(ShortDuration(absl::Minutes(187)), "3h07m");
  EXPECT_EQ(ShortDuration(absl::Hours(52)), "2d04h");
}

TEST(ExitCodeTest, FollowsTheStatusCode) {
  EXPECT_EQ(ExitCodeOf(absl::UnimplementedError("")), ExitCode::kRefused);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), ExitCode::kRefused);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("")), ExitCode::kRefused);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), ExitCode::kUnreachable);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError("")), ExitCode::kCancelled);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), ExitCode::kFailed);
}

TEST(ShellWordTest, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(ShellWord("build/bin/lockstep"), "build/bin/lockstep");
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord(""), "''");
}

TEST(FieldDocsTest, MessageHasItsKeysWithDefaults) {
  const auto text = FieldDocs().Explain("jobspec.train");
  ASSERT_THAT(text, IsOk());
  EXPECT_THAT(*text, AllOf(HasSubstr("train  (keys)"),
                           HasSubstr("global_batch  (integer)"),
                           HasSubstr("Default: constant.")));
}

TEST(FieldDocsTest, ScalarHasTextAndDefault) {
  const auto text = FieldDocs().Explain("train.optimizer.betas");
  ASSERT_THAT(text, IsOk());
  EXPECT_EQ(*text,
            "train.optimizer.betas  (number, or a list)\n\n"
            "Decay rates of the moment estimates (adamw, lamb).\n\n"
            "Default: [0.9, 0.999]\n");
}

TEST(FieldDocsTest, EnumHasItsWordsWithDocs) {
  const auto text = FieldDocs().Explain("train.precision");
  ASSERT_THAT(text, IsOk());
  EXPECT_THAT(*text,
              AllOf(HasSubstr("Default: fp32\n"), HasSubstr("\n  bf16\n"),
                    HasSubstr("fp32 master weights"),
                    ::testing::Not(HasSubstr("unspecified"))));
}

TEST(FieldDocsTest, UnknownKeyNamesTheNearest) {
  const FieldDocs docs;
  EXPECT_THAT(docs.Explain("train.setps"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("did you mean \"train.steps\"?")));
  EXPECT_THAT(docs.Explain("action"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(docs.Explain("name.first"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("has no keys of its own")));
}

// Every key is documented, so that `explain` never comes up empty.
void ExpectDocumented(const FieldDocs& docs,
                      const google::protobuf::Descriptor& type,
                      const std::string& path) {
  for (int i = 0; i < type.field_count(); ++i) {
    const auto& field = *type.field(i);
    if (field.name() == "action") continue;
    const std::string key = absl::StrCat(path, field.name());
    const auto text = docs.Explain(key);
    ASSERT_THAT(text, IsOk());
    const bool nested =
        field.message_type() != nullptr &&
        field.message_type()->file()->package() == "lockstep.v1";
    if (nested && field.message_type()->name() != "ByteSize" &&
        field.message_type()->name() != "DeviceRange") {
      ExpectDocumented(docs, *field.message_type(), key + ".");
    }
    EXPECT_NE(text->find("\n\n"), std::string::npos) << key;
    const bool range =
        path.find("devices.") != std::string::npos;  // min and max say it all
    EXPECT_TRUE(range || text->size() > key.size() + 40) << *text;
  }
}

TEST(FieldDocsTest, EveryKeyIsDocumented) {
  ExpectDocumented(FieldDocs(), *v1::JobSpec::descriptor(), "");
}

TEST(JobFileTest, RelativePathsStartAtTheJobFile) {
  v1::JobSpec spec = SampleJob();
  spec.mutable_data()->mutable_train()->add_path("/abs.txt");
  spec.mutable_data()->mutable_tokenizer()->set_path("../t.model");
  MakePathsAbsolute("/a/b", spec);
  EXPECT_EQ(spec.data().train().path(0), "/a/b/kjv.txt");
  EXPECT_EQ(spec.data().train().path(1), "/abs.txt");
  EXPECT_EQ(spec.data().tokenizer().path(), "/a/t.model");
  EXPECT_FALSE(spec.data().has_validation());
}

class CheckInputsTest : public ::testing::Test {
 protected:
  absl::Status Check(const std::string& path) {
    v1::JobSpec spec = SampleJob();
    spec.mutable_data()->mutable_train()->set_path(0, folder_.File(path));
    return CheckInputs(spec);
  }
  TempDir folder_;
};

TEST_F(CheckInputsTest, FileFolderAndGlobAreFound) {
  folder_.Write("data/a.txt", "x");
  EXPECT_THAT(Check("data/a.txt"), IsOk());
  EXPECT_THAT(Check("data"), IsOk());
  EXPECT_THAT(Check("data/*.txt"), IsOk());
}

TEST_F(CheckInputsTest, WhatIsWrongIsNamed) {
  folder_.Write("data/empty.txt", "");
  folder_.Write("data/strange.xyz", "x");
  std::filesystem::create_directory(folder_.File("nothing"));
  EXPECT_THAT(Check("absent.txt"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent.txt")));
  EXPECT_THAT(Check("data/empty.txt"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("empty.txt is empty")));
  EXPECT_THAT(Check("data/strange.xyz"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("can't be told from its name")));
  EXPECT_THAT(Check("nothing"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("has no .txt")));
  EXPECT_THAT(Check("data/*.csv"), StatusIs(absl::StatusCode::kNotFound,
                                            HasSubstr("nothing matches")));
  EXPECT_THAT(Check("data/e*.txt"), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("is empty")));
}

v1::StepReport Step(int64_t step) {
  v1::StepReport report;
  report.set_step(step);
  return report;
}

TEST(StepsFileTest, EndsWholeWhateverCameBefore) {
  const TempDir folder;
  const std::string path = folder.File("steps.jsonl");
  auto file = StepsFile::Open(path);
  ASSERT_THAT(file, IsOk());
  (*file)->Append(Step(1));
  (*file)->Append(Step(2));
  // A restart.
  (*file)->Append(Step(1));
  EXPECT_THAT((*file)->Finish({Step(1), Step(2), Step(3)}), IsOk());
  const std::string text = folder.Read("steps.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_THAT(text, ::testing::StartsWith("{\"step\":\"1\","));
}

TEST(StepsFileTest, StepsThatTheHistoryHasDroppedStay) {
  const TempDir folder;
  auto file = StepsFile::Open(folder.File("steps.jsonl"));
  ASSERT_THAT(file, IsOk());
  for (int i = 1; i <= 4; ++i) (*file)->Append(Step(i));
  EXPECT_THAT((*file)->Finish({Step(3), Step(4), Step(5)}), IsOk());
  const std::string text = folder.Read("steps.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_THAT(text, ::testing::StartsWith("{\"step\":\"1\","));
}

TEST(StepsFileTest, FullDiskAndBadPathAreToldOf) {
  EXPECT_THAT(StepsFile::Open("/nowhere/steps"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--steps-out /nowhere/steps")));
  auto full = StepsFile::Open("/dev/full");
  ASSERT_THAT(full, IsOk());
  (*full)->Append(Step(1));
  EXPECT_THAT(
      (*full)->Finish({Step(1)}),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("/dev/full")));
}

TEST(ContextsTest, UseMakesAndChoosesAContext) {
  const TempDir folder;
  const std::map<std::string, std::string> home = {
      {"XDG_CONFIG_HOME", folder.path()}};
  EXPECT_EQ(
      RunCommand({"context", "use", "lab", "--coordinator", "h:7"}, home).code,
      0);
  EXPECT_EQ(RunCommand({"context", "list"}, home).out,
            "CURRENT  NAME   COORDINATOR\n"
            "         local  -\n"
            "*        lab    h:7\n");
  EXPECT_EQ(RunCommand({"context", "use", "local"}, home).code, 0);
  EXPECT_EQ(RunCommand({"context", "use", "lab"}, home).code, 0);
  EXPECT_EQ(RunCommand({"context", "use", "other"}, home).code, 2);
  struct stat about = {};
  ASSERT_EQ(stat(folder.File("lockstep/contexts.json").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  folder.Write("lockstep/contexts.json", "[]");
  const auto broken = RunCommand({"get", "jobs"}, home);
  EXPECT_EQ(broken.code, 2);
  EXPECT_THAT(broken.err, HasSubstr("contexts.json"));
}

TEST(FolderLockTest, SecondOwnerIsRefusedWithThePid) {
  const TempDir folder;
  EXPECT_FALSE(FolderLock::IsHeld(folder.path()));
  {
    const auto first = FolderLock::Acquire(folder.path());
    ASSERT_THAT(first, IsOk());
    EXPECT_TRUE(FolderLock::IsHeld(folder.path()));
    EXPECT_THAT(FolderLock::Acquire(folder.path()),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr(absl::StrCat("pid ", getpid()))));
  }
  EXPECT_FALSE(FolderLock::IsHeld(folder.path()));
}

TEST(ClusterFileTest, ReadsBackWhatWasWritten) {
  const TempDir folder;
  EXPECT_THAT(ClusterFile::Read(folder.path()),
              StatusIs(absl::StatusCode::kNotFound));
  const ClusterFile file = {.pid = 12,
                            .coordinator = "127.0.0.1:5",
                            .metrics = "127.0.0.1:6",
                            .daemon_pids = {13, 14}};
  ASSERT_THAT(file.Write(folder.path()), IsOk());
  const auto back = ClusterFile::Read(folder.path());
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->pid, 12);
  EXPECT_EQ(back->coordinator, "127.0.0.1:5");
  EXPECT_EQ(back->daemon_pids, std::vector<int64_t>({13, 14}));
  folder.Write("cluster.json", "{\"pid\": \"x\"");
  EXPECT_THAT(ClusterFile::Read(folder.path()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

class DaemonProcessTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<DaemonProcess>> Start(
      const std::string& script) {
    return DaemonProcess::Start({.title = "daemon",
                                 .program = "/bin/sh",
                                 .arguments = {"-c", script},
                                 .log_path = folder_.File("log")});
  }
  TempDir folder_;
  StopToken stop_;
};

TEST_F(DaemonProcessTest, SaysWhereItListens) {
  folder_.Write("log", "grpc listening on an older address\n");
  auto daemon = Start("echo I grpc listening on 127.0.0.1:7 >&2; sleep 100");
  ASSERT_THAT(daemon, IsOk());
  const auto line =
      (*daemon)->WaitForLine("grpc listening on ", absl::Seconds(20), stop_);
  ASSERT_THAT(line, IsOk());
  EXPECT_EQ(*line, "127.0.0.1:7");
  EXPECT_FALSE((*daemon)->ended());
  (*daemon)->Terminate();
  EXPECT_TRUE((*daemon)->WaitForEnd(absl::Seconds(20)));
}

TEST_F(DaemonProcessTest, EndBeforeThatIsToldWithItsLastLines) {
  auto daemon = Start("echo no port for me; exit 2");
  ASSERT_THAT(daemon, IsOk());
  EXPECT_THAT((*daemon)->WaitForLine("listening", absl::Seconds(20), stop_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("no port for me")));
}

TEST_F(DaemonProcessTest, MissingProgramIsNotFound) {
  EXPECT_THAT(
      DaemonProcess::Start({.title = "daemon",
                            .program = "/nowhere/daemon",
                            .arguments = {},
                            .log_path = folder_.File("log")}),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/daemon")));
}

TEST_F(DaemonProcessTest, StopTokenEndsTheWait) {
  auto daemon = Start("sleep 100");
  ASSERT_THAT(daemon, IsOk());
  stop_.Stop();
  EXPECT_THAT((*daemon)->WaitForLine("never", absl::Seconds(20), stop_),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(DaemonProcessTest, IsStartedAgainWithTheNewArguments) {
  auto daemon = Start("sleep 100");
  ASSERT_THAT(daemon, IsOk());
  (*daemon)->RestartWith({"-c", "echo second life; sleep 100"});
  kill((*daemon)->pid(), SIGKILL);
  EXPECT_THAT((*daemon)->WaitForLine("second", absl::Seconds(20), stop_),
              IsOk());
  EXPECT_FALSE((*daemon)->ended());
}

TEST_F(DaemonProcessTest, GivesUpOnWhatEndsAtOnceAgainAndAgain) {
  auto daemon = Start("sleep 100");
  ASSERT_THAT(daemon, IsOk());
  (*daemon)->RestartWith({"-c", "echo life >> " + folder_.File("lives")});
  kill((*daemon)->pid(), SIGKILL);
  EXPECT_TRUE((*daemon)->WaitForEnd(absl::Seconds(30)));
  const std::string lives = folder_.Read("lives");
  EXPECT_EQ(std::count(lives.begin(), lives.end(), '\n'), 5);
}

TEST(InterruptHandlerTest, CountsAndComesBackAfterItsPatience) {
  StopToken third;
  std::vector<int> counts;
  {
    InterruptHandler interrupts([&](int count) {
      counts.push_back(count);
      if (count == 3) third.Stop();
      return count == 1 ? absl::InfiniteDuration() : absl::Milliseconds(1);
    });
    raise(SIGTERM);
    raise(SIGINT);
    EXPECT_TRUE(third.WaitFor(absl::Seconds(20)));
  }
  EXPECT_GE(counts.size(), 3u);
  EXPECT_EQ(counts[0], 1);
  EXPECT_EQ(counts[2], 3);
}

TEST(InterruptHandlerTest, SignalThatWasIgnoredStaysIgnored) {
  const auto before = signal(SIGHUP, SIG_IGN);
  {
    InterruptHandler interrupts([](int) { return absl::InfiniteDuration(); });
    struct sigaction now = {};
    ASSERT_EQ(sigaction(SIGHUP, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, SIG_IGN);
  }
  signal(SIGHUP, before);
}

}  // namespace
}  // namespace lockstep
