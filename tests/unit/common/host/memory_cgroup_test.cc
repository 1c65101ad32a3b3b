#include "common/host/memory_cgroup.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

constexpr char kV2Mount[] =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
constexpr char kV1Mount[] =
    "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "34 30 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

TEST(MemoryCgroupTest, V2LimitIsTheLowestOfGroupAndAncestors) {
  TempDir root;
  root.Write("proc/self/cgroup", "0::/pod/container\n");
  root.Write("proc/self/mountinfo", kV2Mount);
  root.Write("sys/fs/cgroup/pod/memory.max", "1000000\n");
  root.Write("sys/fs/cgroup/pod/container/memory.max", "max\n");
  root.Write("sys/fs/cgroup/pod/container/memory.events",
             "low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\n");
  const MemoryCgroup cgroup = MemoryCgroup::Find(root.path());
  EXPECT_EQ(cgroup.LimitBytes(), 1000000u);
  EXPECT_EQ(cgroup.OomKills(), 3);
}

TEST(MemoryCgroupTest, V1IsReadFromTheMemoryController) {
  TempDir root;
  root.Write("proc/self/cgroup", "5:cpu:/\n4:memory:/job\n0::/\n");
  root.Write("proc/self/mountinfo", absl::StrCat(kV1Mount, kV2Mount));
  root.Write("sys/fs/cgroup/memory/memory.limit_in_bytes",
             "9223372036854771712\n");
  root.Write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2000000\n");
  root.Write("sys/fs/cgroup/memory/job/memory.oom_control",
             "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  const MemoryCgroup cgroup = MemoryCgroup::Find(root.path());
  EXPECT_EQ(cgroup.LimitBytes(), 2000000u);
  EXPECT_EQ(cgroup.OomKills(), 5);
}

TEST(MemoryCgroupTest, ContainerThatSeesOnlyItsOwnPartOfTheHierarchy) {
  TempDir root;
  root.Write("proc/self/cgroup", "4:memory:/docker/abc\n");
  root.Write("proc/self/mountinfo",
             "34 30 0:30 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup "
             "rw,memory\n");
  root.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n");
  EXPECT_EQ(MemoryCgroup::Find(root.path()).LimitBytes(), 3000000u);
}

TEST(MemoryCgroupTest, NoLimitIsAbsentAndKillsAreTheHosts) {
  TempDir root;
  root.Write("proc/self/cgroup", "0::/\n");
  root.Write("proc/self/mountinfo", kV2Mount);
  root.Write("sys/fs/cgroup/cgroup.procs", "");
  root.Write("proc/vmstat", "nr_free_pages 5\noom_kill 11\n");
  const MemoryCgroup cgroup = MemoryCgroup::Find(root.path());
  EXPECT_EQ(cgroup.LimitBytes(), std::nullopt);
  EXPECT_EQ(cgroup.OomKills(), 11);
}

TEST(MemoryCgroupTest, CounterNeedsItsWholeName) {
  EXPECT_EQ(ReadCounter("oom_kill_disable 4\noom_kill 9\n", "oom_kill"), 9);
  EXPECT_EQ(ReadCounter("oom 4\n", "oom_kill"), std::nullopt);
}

}  // namespace
}  // namespace lockstep
