// A local cluster that another command owns: what is done where it has no
// workers, and when it is gone.
#include "cli/cluster_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/cluster_file.h"
#include "cli/command.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/cli/fake_job_service.h"

namespace lockstep {
namespace {

using testing::FakeJobService;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

class ClusterSessionTest : public ::testing::Test {
 protected:
  ClusterSessionTest() {
    console_.program_folder = folder_.path();
    std::filesystem::create_directories(folder_.File("logs"));
    // Another command, whose coordinator the fake is.
    auto lock = FolderLock::Acquire(folder_.path());
    CHECK(lock.ok()) << lock.status();
    owner_ = *std::move(lock);
    WriteClusterFile({getpid()});
    // A worker that ends at once, which tells that it was started.
    WriteProgram("lockstep-worker", "exit 7");
  }

  void WriteClusterFile(const std::vector<int64_t>& daemon_pids) {
    ClusterFile file;
    file.pid = getpid();
    file.coordinator = service_.address();
    file.daemon_pids = daemon_pids;
    const absl::Status written = file.Write(folder_.path());
    CHECK(written.ok()) << written;
  }

  void WriteProgram(const std::string& name, const std::string& script) {
    const std::string path =
        folder_.Write(name, absl::StrCat("#!/bin/sh\n", script, "\n"));
    chmod(path.c_str(), 0755);
  }

  ClusterFlags Flags() {
    ClusterFlags flags;
    flags.folder = folder_.path();
    return flags;
  }

  absl::StatusOr<std::unique_ptr<ClusterSession>> Open() {
    return ClusterSession::Open(
        {.flags = Flags(),
         .local_start = ClusterSession::LocalStart::kIfNeeded,
         .stop = &stop_},
        console_);
  }

  TempDir folder_;
  FakeJobService service_;
  std::unique_ptr<FolderLock> owner_;
  std::ostringstream out_;
  std::ostringstream err_;
  Console console_ = {.out = out_, .err = err_};
  StopToken stop_;
};

TEST_F(ClusterSessionTest, OwnersClusterWithoutWorkersGetsSome) {
  const auto session = Open();
  ASSERT_THAT(session, IsOk());
  EXPECT_THAT((*session)->StartWorkersFor(v1::JobInfo()),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("exit code 7")));
  // The file is the owner's still.
  EXPECT_THAT(ClusterFile::Read(folder_.path()), IsOk());
}

TEST_F(ClusterSessionTest, OwnersReadyWorkersAreUsed) {
  service_.workers.add_workers()->set_state("READY");
  const auto session = Open();
  ASSERT_THAT(session, IsOk());
  EXPECT_THAT((*session)->StartWorkersFor(v1::JobInfo()), IsOk());
}

TEST_F(ClusterSessionTest, OwnersWorkersAreLeftTimeToComeUp) {
  WriteClusterFile({getpid(), getpid()});
  const auto session = Open();
  ASSERT_THAT(session, IsOk());
  EXPECT_THAT((*session)->StartWorkersFor(v1::JobInfo()), IsOk());
}

TEST_F(ClusterSessionTest, CommandWhoseClusterEndedWithItsOwnerIsBegunAnew) {
  folder_.Write("state.db", "");
  WriteProgram("lockstep-coordinator",
               absl::StrCat("echo 'grpc listening on ", service_.address(),
                            "' >&2\n"
                            "echo 'metrics listening on 127.0.0.1:1' >&2\n"
                            "exec sleep 600"));
  // No leftover to wait for.
  WriteClusterFile({});
  CommandContext context = {
      .console = console_, .flags = Flags(), .chosen = nullptr};
  int calls = 0;
  const ExitCode code =
      WithCluster(context, ClusterSession::LocalStart::kIfNeeded,
                  [&](ClusterSession&, StopToken&) -> absl::StatusOr<ExitCode> {
                    if (++calls > 1) return ExitCode::kDone;
                    owner_.reset();
                    return absl::UnavailableError("the coordinator is gone");
                  });
  EXPECT_EQ(code, ExitCode::kDone) << err_.str();
  EXPECT_EQ(calls, 2);
}

TEST_F(ClusterSessionTest, CommandThatHasBegunIsNotRepeated) {
  CommandContext context = {
      .console = console_, .flags = Flags(), .chosen = nullptr};
  int calls = 0;
  const ExitCode code = WithCluster(
      context, ClusterSession::LocalStart::kIfNeeded,
      [&](ClusterSession& session, StopToken&) -> absl::StatusOr<ExitCode> {
        ++calls;
        session.MarkBegun();
        owner_.reset();
        return absl::UnavailableError("the coordinator is gone");
      });
  EXPECT_EQ(code, ExitCode::kUnreachable);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace lockstep
