#include "common/host/host_resources.h"

#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

constexpr char kV2Mount[] =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
constexpr char kV1Mount[] =
    "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";

TEST(HostResourcesTest, LowestCpuQuotaOfV2LimitsTheCores) {
  const TempDir root;
  root.Write("proc/self/cgroup", "0::/pod/container\n");
  root.Write("proc/self/mountinfo", kV2Mount);
  root.Write("sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
  root.Write("sys/fs/cgroup/pod/container/cpu.max", "max 100000\n");
  EXPECT_EQ(UsableCores(root.path()), 1);
}

TEST(HostResourcesTest, CpuQuotaOfV1LimitsTheCores) {
  const TempDir root;
  root.Write("proc/self/cgroup", "5:cpu,cpuacct:/job\n");
  root.Write("proc/self/mountinfo", kV1Mount);
  root.Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.Write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  root.Write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(UsableCores(root.path()), 1);
}

TEST(HostResourcesTest, QuotaThatIsNoneLeavesTheCores) {
  const TempDir root;
  EXPECT_GE(UsableCores(root.path()), 1);
  const int64_t without = UsableCores(root.path());
  root.Write("proc/self/cgroup", "0::/\n");
  root.Write("proc/self/mountinfo", kV2Mount);
  root.Write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(UsableCores(root.path()), without);
}

TEST(HostResourcesTest, MemoryIsTheHostsOrTheGroupsLimit) {
  const TempDir root;
  const uint64_t host = UsableMemoryBytes(root.path());
  EXPECT_GT(host, 0u);
  root.Write("proc/self/cgroup", "0::/a/b\n");
  root.Write("proc/self/mountinfo", kV2Mount);
  root.Write("sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(UsableMemoryBytes(root.path()), host);
  root.Write("sys/fs/cgroup/a/memory.max", "5000\n");
  EXPECT_EQ(UsableMemoryBytes(root.path()), 5000u);
}

}  // namespace
}  // namespace lockstep
