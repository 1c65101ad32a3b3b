// DeviceInventory: the devices that a worker offers, and its host.
#ifndef LOCKSTEP_WORKER_AGENT_DEVICE_INVENTORY_H_
#define LOCKSTEP_WORKER_AGENT_DEVICE_INVENTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/v1/worker_service.pb.h"

namespace lockstep {

struct DeviceInventory {
  std::vector<v1::DeviceInfo> devices;
  v1::CpuLevel cpu_level = v1::CPU_LEVEL_UNSPECIFIED;
  // Cores that this process may use, by affinity and CPU quota.
  int64_t cores = 1;
};

// `devices` is "auto" (every GPU, or one CPU device where there is none) or
// "cpu:N". A CPU device has `memory_per_device` bytes, or its share of 90 % of
// the memory that the host or the control group has.
//   INVALID_ARGUMENT: a malformed choice, or more memory than there is.
//   FAILED_PRECONDITION: "no GPU found" for "cuda:...".
absl::StatusOr<DeviceInventory> TakeInventory(
    const std::string& devices, std::optional<uint64_t> memory_per_device);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_DEVICE_INVENTORY_H_
