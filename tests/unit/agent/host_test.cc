// What a worker finds and claims on its host.
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "common/ids.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "worker/agent/device_inventory.h"
#include "worker/agent/local_address.h"
#include "worker/agent/proc_files.h"
#include "worker/agent/rank_launcher.h"
#include "worker/agent/runtime_dir.h"
#include "worker/agent/worker_name.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing::StatusIs;
using testing::TempDir;

TEST(DeviceInventoryTest, CpuDevicesShareTheMemoryUnlessItIsGiven) {
  ASSERT_OK_AND_ASSIGN(const auto one, TakeInventory("auto", std::nullopt));
  ASSERT_OK_AND_ASSIGN(const auto three, TakeInventory("cpu:3", std::nullopt));
  ASSERT_EQ(one.devices.size(), 1u);
  ASSERT_EQ(three.devices.size(), 3u);
  EXPECT_EQ(three.devices[2].id(), "cpu:2");
  EXPECT_NEAR(static_cast<double>(three.devices[0].memory_bytes()),
              static_cast<double>(one.devices[0].memory_bytes()) / 3, 2);
  EXPECT_GE(one.cores, 1);
  EXPECT_NE(one.cpu_level, v1::CPU_LEVEL_UNSPECIFIED);
  ASSERT_OK_AND_ASSIGN(const auto given, TakeInventory("cpu:2", 1 << 20));
  EXPECT_EQ(given.devices[1].memory_bytes(), 1u << 20);
}

TEST(DeviceInventoryTest, WhatThisHostDoesNotHaveIsRefused) {
  EXPECT_THAT(TakeInventory("cuda:0,1", std::nullopt),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("no GPU found")));
  EXPECT_THAT(TakeInventory("cpu:2", uint64_t{1} << 60),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("doesn't fit this host")));
  for (const std::string devices : {"cpu:0", "cpu:", "cpu:-1", "tpu", ""}) {
    EXPECT_THAT(
        TakeInventory(devices, std::nullopt),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is malformed")))
        << devices;
  }
}

TEST(WorkerNameTest, SecondWorkerOfAHostGetsANumberUntilTheFirstIsGone) {
  const std::string base = "test-" + RandomBase32(8);
  ASSERT_OK_AND_ASSIGN(ClaimedName first, ClaimWorkerName(base));
  ASSERT_OK_AND_ASSIGN(const ClaimedName second, ClaimWorkerName(base));
  EXPECT_EQ(first.name, base);
  EXPECT_EQ(second.name, base + "-2");
  first.claim.Close();
  ASSERT_OK_AND_ASSIGN(const ClaimedName third, ClaimWorkerName(base));
  EXPECT_EQ(third.name, base);
}

TEST(RuntimeDirTest, IsPrivateAndGoesWithItsObject) {
  TempDir parent;
  std::string path;
  {
    ASSERT_OK_AND_ASSIGN(const auto dir, RuntimeDir::Make(parent.path()));
    path = dir->path();
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(RuntimeDirTest, LeftOversOfDeadWorkersAreRemovedAndLiveOnesKept) {
  TempDir parent;
  parent.Write("lockstep-worker-dead00/rank.sock", "");
  parent.Write("other/file", "");
  ASSERT_OK_AND_ASSIGN(const auto live, RuntimeDir::Make(parent.path()));
  EXPECT_FALSE(std::filesystem::exists(parent.File("lockstep-worker-dead00")));
  ASSERT_OK_AND_ASSIGN(const auto second, RuntimeDir::Make(parent.path()));
  EXPECT_TRUE(std::filesystem::exists(live->path()));
  EXPECT_TRUE(std::filesystem::exists(parent.File("other/file")));
}

TEST(LocalAddressTest, LoopbackPeerIsReachedFromLoopback) {
  EXPECT_EQ(LocalAddressTowards({"127.0.0.1", 7700}), "127.0.0.1");
  EXPECT_EQ(LocalAddressTowards({"no-such-host.invalid", 7700}), "127.0.0.1");
}

TEST(ProcFilesTest, OwnProcessRunsAndHasMemory) {
  EXPECT_EQ(ProcessState(getpid()), 'R');
  EXPECT_GT(ResidentBytes(getpid()), uint64_t{1} << 20);
  EXPECT_EQ(ProcessState(1 << 30), std::nullopt);
}

TEST(RankEnvironmentTest, RanksThatShareCoresWaitPassively) {
  RankLauncherOptions options;
  options.socket_path = "/tmp/x/rank.sock";
  options.cores = 4;
  v1::RankAssignment assignment;
  assignment.set_threads(4);
  setenv("OMP_NUM_THREADS", "77", 1);
  std::vector<std::string> alone =
      RankEnvironment(options, assignment, "secret");
  unsetenv("OMP_NUM_THREADS");
  EXPECT_THAT(alone, Contains("OMP_NUM_THREADS=4"));
  EXPECT_THAT(alone, Not(Contains("OMP_NUM_THREADS=77")));
  EXPECT_THAT(alone, Contains("LOCKSTEP_RANK_TOKEN=secret"));
  EXPECT_THAT(alone, Not(Contains(StartsWith("OMP_WAIT_POLICY="))));
  assignment.set_threads(2);
  EXPECT_THAT(RankEnvironment(options, assignment, "secret"),
              Contains("OMP_WAIT_POLICY=passive"));
}

}  // namespace
}  // namespace lockstep
