#include "common/host/host_resources.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/host/control_group.h"
#include "common/host/memory_cgroup.h"
#include "common/host/small_file.h"

namespace lockstep {
namespace {

// The words "QUOTA PERIOD" of one group: v2 has them in one file.
std::string QuotaText(const ControlGroup& group, const std::string& folder) {
  if (group.v2) return ReadSmallFile(folder + "/cpu.max").value_or("");
  return absl::StrCat(
      ReadSmallFile(folder + "/cpu.cfs_quota_us").value_or(""), " ",
      ReadSmallFile(folder + "/cpu.cfs_period_us").value_or(""));
}

// The lowest quota, in whole cores; absent if there is none.
std::optional<int64_t> CpuQuota(const std::string& root) {
  std::optional<int64_t> lowest;
  const ControlGroup group = FindControlGroup(root, "cpu");
  for (const std::string& folder : group.folders) {
    const std::string text = QuotaText(group, folder);
    const std::vector<absl::string_view> words =
        absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
    int64_t quota = 0;
    int64_t period = 0;
    // "max", or -1: none.
    if (words.size() < 2 || !absl::SimpleAtoi(words[0], &quota) ||
        !absl::SimpleAtoi(words[1], &period) || quota <= 0 || period <= 0) {
      continue;
    }
    lowest = std::min(lowest.value_or(quota / period), quota / period);
  }
  return lowest;
}

}  // namespace

int64_t UsableCores(const std::string& root) {
  int64_t cores = std::max<int64_t>(1, sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    cores = std::min<int64_t>(cores, CPU_COUNT(&set));
  }
  if (const auto quota = CpuQuota(root)) cores = std::min(cores, *quota);
  return std::max<int64_t>(1, cores);
}

uint64_t UsableMemoryBytes(const std::string& root) {
  const uint64_t host = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                        static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::min(host, MemoryCgroup::Find(root).LimitBytes().value_or(host));
}

}  // namespace lockstep
