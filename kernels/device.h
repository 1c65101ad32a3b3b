// Device: one CPU share or one GPU, with its allocator and streams.
#ifndef LOCKSTEP_KERNELS_DEVICE_H_
#define LOCKSTEP_KERNELS_DEVICE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/allocator.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace lockstep {

// Instruction levels of x86-64 (the psABI's v2, v3 and v4).
enum class CpuLevel : uint8_t { kV2 = 2, kV3 = 3, kV4 = 4 };
// The highest level that this processor and operating system run.
CpuLevel DetectCpuLevel();

struct DeviceOptions {
  // Counted bytes that may be live; 0 is no limit.
  int64_t memory_limit_bytes = 0;
  // Threads of the compute pool (CPU).
  int threads = 1;
  // Kernels of at most this level are used, and oneDNN is held to it, so that
  // replicas on unlike hosts stay bit-equal (CPU). Must be one the host runs.
  CpuLevel cpu_level = CpuLevel::kV2;
  // Whether waiting threads give up their core: set where ranks share cores.
  bool passive_waiting = false;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  virtual Allocator& allocator() = 0;
  // The compute stream; lives as long as the device.
  virtual Stream& stream() = 0;
};

// The CPU device of this process. Sets up the process's one compute pool, flush
// to zero in all its threads, and the kernels of `cpu_level`: there is at most
// one CPU device in a process at a time (FAILED_PRECONDITION otherwise).
absl::StatusOr<std::unique_ptr<Device>> MakeCpuDevice(
    const DeviceOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_DEVICE_H_
