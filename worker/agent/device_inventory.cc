#include "worker/agent/device_inventory.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/bytes.h"
#include "common/host/host_resources.h"
#include "common/status_macros.h"
#include "kernels/device.h"

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
