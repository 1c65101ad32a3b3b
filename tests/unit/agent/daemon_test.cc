// The lockstep-worker program itself, with fake_rank in place of lockstep-rank.
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/child_process.h"
#include "tests/testing/process_list.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/agent/fake_coordinator.h"

namespace lockstep {
namespace {

using testing::ChildProcess;
using testing::ExitStatus;
using testing::FakeCoordinator;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::WaitForProcessEnd;

constexpr absl::Duration kPatience = absl::Seconds(30);

class WorkerDaemonTest : public ::testing::Test {
 protected:
  WorkerDaemonTest() {
    // A worker looks for lockstep-rank beside itself.
    std::filesystem::create_directories(folder_.File("bin"));
    std::filesystem::copy_file(LOCKSTEP_WORKER_PROGRAM, Program());
    std::filesystem::copy_file(LOCKSTEP_FAKE_RANK,
                               folder_.File("bin/lockstep-rank"));
  }

  std::string Program() { return folder_.File("bin/lockstep-worker"); }

  // With the flags of a good start, but for those that `flags` has.
  std::unique_ptr<ChildProcess> StartWorker(
      std::map<std::string, std::string> flags) {
    flags.insert({"--coordinator", coordinator_.address().ToString()});
    flags.insert({"--job-root", folder_.File("jobs")});
    flags.insert({"--data-root", folder_.path()});
    std::vector<std::string> arguments = {Program()};
    for (const auto& [flag, value] : flags) {
      arguments.push_back(flag);
      arguments.push_back(value);
    }
    auto child = ChildProcess::Start({arguments, {}, ""});
    EXPECT_OK(child);
    return child.ok() ? *std::move(child) : nullptr;
  }

  TempDir folder_;
  FakeCoordinator coordinator_;
};

TEST_F(WorkerDaemonTest, KilledWorkerTakesItsRanksWithIt) {
  auto worker = StartWorker({{"--devices", "cpu:2"}});
  ASSERT_TRUE(coordinator_.StartGang("wait", 2));
  worker->Signal(SIGKILL);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_OK(WaitForProcessEnd(
        static_cast<pid_t>(coordinator_.AwaitStart(rank)->pid()), kPatience));
  }
}

TEST_F(WorkerDaemonTest, SigtermStopsTheRanksAndEndsWith0) {
  auto worker = StartWorker({{"--devices", "cpu:2"}});
  ASSERT_TRUE(coordinator_.StartGang("wait", 2));
  worker->Signal(SIGTERM);
  const auto exited = coordinator_.AwaitExit(0);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause(), v1::CAUSE_LOST_WORKER);
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, worker->WaitForExit(kPatience));
  EXPECT_EQ(status.code, 0) << worker->Output(testing::Stream::kStderr);
}

TEST_F(WorkerDaemonTest, MetricsPortIsPrinted) {
  auto worker = StartWorker({{"--metrics", "127.0.0.1:0"}});
  EXPECT_OK(worker->WaitForLine(testing::Stream::kStderr,
                                "metrics listening on 127.0.0.1:", kPatience));
  // For programs: nothing stands before it.
  EXPECT_THAT("\n" + worker->Output(testing::Stream::kStderr),
              HasSubstr("\nmetrics listening on 127.0.0.1:"));
}

struct Refusal {
  std::map<std::string, std::string> flags;
  std::string phrase;
};

class WorkerRefusalTest : public WorkerDaemonTest,
                          public ::testing::WithParamInterface<Refusal> {};

TEST_P(WorkerRefusalTest, EndsWith2AndOneLine) {
  auto worker = StartWorker(GetParam().flags);
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, worker->WaitForExit(kPatience));
  EXPECT_EQ(status.code, 2);
  const std::string output = worker->Output(testing::Stream::kStderr);
  EXPECT_THAT(output, HasSubstr(GetParam().phrase));
  EXPECT_EQ(output.find('\n'), output.size() - 1) << output;
}

INSTANTIATE_TEST_SUITE_P(
    Flags, WorkerRefusalTest,
    ::testing::Values(Refusal{{{"--devices", "cuda:0"}}, "no GPU found"},
                      Refusal{{{"--coordinator", "10.0.0.5:1"}}, "--insecure"},
                      Refusal{{{"--tls-cert", "x"}}, "not built yet"},
                      Refusal{{{"--job-root", "/proc/nothing"}},
                              "can't make the folder /proc/nothing"}));

}  // namespace
}  // namespace lockstep
