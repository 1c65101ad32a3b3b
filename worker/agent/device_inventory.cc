#include "worker/agent/device_inventory.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/bytes.h"
#include "common/status_macros.h"
#include "kernels/device.h"
#include "worker/agent/memory_cgroup.h"
#include "worker/agent/proc_files.h"

namespace lockstep {
namespace {

constexpr int64_t kMaxCpuDevices = 1024;

absl::StatusOr<int64_t> CpuDevices(const std::string& devices) {
  if (devices == "auto") return 1;
  if (absl::StartsWith(devices, "cuda")) {
    return absl::FailedPreconditionError(
        absl::StrCat("--devices ", devices, ": no GPU found"));
  }
  int64_t count = 0;
  if (!absl::StartsWith(devices, "cpu:") ||
      !absl::SimpleAtoi(devices.substr(4), &count) || count < 1 ||
      count > kMaxCpuDevices) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices '", devices,
                     "' is malformed; want auto, cpu:N with N from 1 to ",
                     kMaxCpuDevices, ", or cuda:0,1"));
  }
  return count;
}

// The quota of the process's own group, in cores; absent if there is none.
std::optional<int64_t> CpuQuota() {
  // Both layouts, as a container sees them.
  if (const auto text = ReadSmallFile("/sys/fs/cgroup/cpu.max"); text.ok()) {
    const std::vector<std::string> parts =
        absl::StrSplit(*text, absl::ByAnyChar(" \n"));
    int64_t quota = 0;
    int64_t period = 0;
    if (parts.size() >= 2 && absl::SimpleAtoi(parts[0], &quota) &&
        absl::SimpleAtoi(parts[1], &period) && quota > 0 && period > 0) {
      return quota / period;
    }
    return std::nullopt;
  }
  const auto quota_text = ReadSmallFile("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const auto period_text =
      ReadSmallFile("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  int64_t quota = 0;
  int64_t period = 0;
  if (quota_text.ok() && period_text.ok() &&
      absl::SimpleAtoi(*quota_text, &quota) &&
      absl::SimpleAtoi(*period_text, &period) && quota > 0 && period > 0) {
    return quota / period;
  }
  return std::nullopt;
}

int64_t UsableCores() {
  int64_t cores = std::max<int64_t>(1, sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    cores = std::min<int64_t>(cores, CPU_COUNT(&set));
  }
  if (const auto quota = CpuQuota()) cores = std::min(cores, *quota);
  return std::max<int64_t>(1, cores);
}

uint64_t UsableMemoryBytes() {
  const uint64_t host = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                        static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::min(host, MemoryCgroup::Find("").LimitBytes().value_or(host));
}

v1::CpuLevel ToProto(CpuLevel level) {
  switch (level) {
    case CpuLevel::kV2:
      return v1::CPU_LEVEL_X86_64_V2;
    case CpuLevel::kV3:
      return v1::CPU_LEVEL_X86_64_V3;
    case CpuLevel::kV4:
      return v1::CPU_LEVEL_X86_64_V4;
  }
  return v1::CPU_LEVEL_UNSPECIFIED;
}

}  // namespace

absl::StatusOr<DeviceInventory> TakeInventory(
    const std::string& devices, std::optional<uint64_t> memory_per_device) {
  ASSIGN_OR_RETURN(const int64_t count, CpuDevices(devices));
  const uint64_t usable = UsableMemoryBytes();
  const uint64_t each = memory_per_device.value_or(
      usable / 10 * 9 / static_cast<uint64_t>(count));
  if (each == 0 || each > usable / static_cast<uint64_t>(count)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--memory-per-device ", FormatBytesExact(each), " for ", count,
        " devices doesn't fit this host, which has ", FormatBytes(usable)));
  }
  DeviceInventory inventory;
  for (int64_t i = 0; i < count; ++i) {
    v1::DeviceInfo& device = inventory.devices.emplace_back();
    device.set_id(absl::StrCat("cpu:", i));
    device.set_kind("cpu");
    device.set_memory_bytes(each);
  }
  inventory.cpu_level = ToProto(DetectCpuLevel());
  inventory.cores = UsableCores();
  return inventory;
}

}  // namespace lockstep
