// A rank that dies by SIGKILL in the middle of collectives: the others learn it
// at once, half-sent messages or not. Ranks 1 and 2 are processes of their own:
// this program started again, with PeerProcess as its only test.
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/testing/file_store.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/dist/group_ranks.h"

namespace lockstep {
namespace {

using testing::FileStore;
using testing::GroupBackend;
using ::testing::HasSubstr;
using testing::StatusIs;
using testing::TempDir;
using testing::TestAllocator;

constexpr char kRankVariable[] = "LOCKSTEP_TEST_RANK";
constexpr char kFolderVariable[] = "LOCKSTEP_TEST_FOLDER";
constexpr char kSharedVariable[] = "LOCKSTEP_TEST_SHARED";
constexpr int kRanks = 3;
constexpr absl::Duration kAtOnce = absl::Seconds(10);

// All-reduces without end; `step` is told how many are done.
absl::Status Train(testing::GroupBackend backend, int rank,
                   const std::string& folder, int64_t elements,
                   const std::function<void(int)>& step) {
  FileStore store(folder);
  TestAllocator allocator;
  GlooGroupFactoryOptions options;
  options.store = &store;
  options.allocator = &allocator;
  options.collective_timeout = absl::Minutes(10);
  ASSIGN_OR_RETURN(const auto made,
                   testing::MakeRankGroup(backend, options, rank, kRanks));
  std::vector<float> values(elements, 0.0f);
  const Tensor tensor(values.data(), DType::kFloat32, {elements},
                      DeviceKind::kCpu);
  for (int done = 1;; ++done) {
    RETURN_IF_ERROR(made.group->AllReduce(tensor, ReduceOp::kSum)->Wait());
    step(done);
  }
}

// Not a test of its own: what the other processes run.
TEST(KilledPeerTest, PeerProcess) {
  const char* rank_text = getenv(kRankVariable);
  if (rank_text == nullptr) GTEST_SKIP() << "run by the other tests";
  int rank = 0;
  int64_t elements = 0;
  const std::string folder = getenv(kFolderVariable);
  ASSERT_TRUE(absl::SimpleAtoi(rank_text, &rank));
  ASSERT_TRUE(absl::SimpleAtoi(getenv("LOCKSTEP_TEST_ELEMENTS"), &elements));
  const auto backend = getenv(kSharedVariable) == std::string("1")
                           ? testing::GroupBackend::kShared
                           : testing::GroupBackend::kGloo;
  EXPECT_THAT(Train(backend, rank, folder, elements, [](int) {}),
              StatusIs(absl::StatusCode::kUnavailable));
}

struct Kill {
  int64_t elements;
  // The victim is killed once so many all-reduces are done.
  int after;
  testing::GroupBackend backend = testing::GroupBackend::kGloo;
};

pid_t StartPeer(int rank, const std::string& folder, const Kill& how) {
  const std::string variables[] = {
      absl::StrCat(kRankVariable, "=", rank),
      absl::StrCat(kFolderVariable, "=", folder),
      absl::StrCat("LOCKSTEP_TEST_ELEMENTS=", how.elements),
      absl::StrCat(kSharedVariable, "=",
                   how.backend == testing::GroupBackend::kShared ? 1 : 0)};
  std::vector<char*> environment;
  for (const std::string& variable : variables) {
    environment.push_back(const_cast<char*>(variable.c_str()));
  }
  environment.push_back(nullptr);
  std::string program = "/proc/self/exe";
  std::string filter = "--gtest_filter=KilledPeerTest.PeerProcess";
  std::string brief = "--gtest_brief=1";
  char* arguments[] = {program.data(), filter.data(), brief.data(), nullptr};
  pid_t pid = 0;
  EXPECT_EQ(posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments,
                        environment.data()),
            0);
  return pid;
}

class KilledPeerTest : public ::testing::TestWithParam<Kill> {};

TEST_P(KilledPeerTest, OthersFailAtOnce) {
  const TempDir folder;
  const pid_t victim = StartPeer(1, folder.path(), GetParam());
  const pid_t other = StartPeer(2, folder.path(), GetParam());
  absl::Notification underway;
  absl::Time killed;
  std::thread killer([&] {
    underway.WaitForNotification();
    killed = absl::Now();
    kill(victim, SIGKILL);
  });
  const absl::Status status = Train(GetParam().backend, 0, folder.path(),
                                    GetParam().elements, [&](int done) {
                                      if (done == GetParam().after)
                                        underway.Notify();
                                    });
  killer.join();
  EXPECT_LT(absl::Now() - killed, kAtOnce);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("is gone")));
  int exit = -1;
  EXPECT_EQ(waitpid(other, &exit, 0), other);
  EXPECT_TRUE(WIFEXITED(exit) && WEXITSTATUS(exit) == 0) << exit;
  EXPECT_EQ(waitpid(victim, &exit, 0), victim);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, KilledPeerTest,
    ::testing::Values(Kill{100, 50}, Kill{100000, 7}, Kill{4000000, 1},
                      Kill{4000000, 2}, Kill{4000000, 3},
                      Kill{100, 50, GroupBackend::kShared},
                      Kill{4000000, 2, GroupBackend::kShared}),
    [](const auto& information) {
      return absl::StrCat(
          information.param.backend == GroupBackend::kShared ? "Shared" : "",
          "Elements", information.param.elements, "_After",
          information.param.after);
    });

}  // namespace
}  // namespace lockstep
