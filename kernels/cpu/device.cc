#include "kernels/device.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "kernels/cpu/arena_allocator.h"
#include "kernels/cpu/cpu_level.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/cpu_stream.h"

namespace lockstep {
namespace cpu {
namespace {

// OpenMP's pool and oneDNN's limit belong to the process.
std::atomic<bool> device_exists{false};

class CpuDevice final : public Device {
 public:
  CpuDevice(std::unique_ptr<ArenaAllocator> allocator, CpuLevel level,
            Bf16Product product, int threads)
      : allocator_(std::move(allocator)),
        stream_(CpuBackend(), *allocator_, KernelsOf(level), product, threads) {
  }
  ~CpuDevice() override { device_exists = false; }
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  Allocator& allocator() override { return *allocator_; }
  Stream& stream() override { return stream_; }

 private:
  std::unique_ptr<ArenaAllocator> allocator_;
  CpuStream stream_;
};

constexpr int kMaxThreads = 1024;

}  // namespace
}  // namespace cpu

absl::StatusOr<std::unique_ptr<Device>> MakeCpuDevice(
    const DeviceOptions& options) {
  if (options.threads < 1 || options.threads > cpu::kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("CPU device: ", options.threads, " threads, want 1 to ",
                     cpu::kMaxThreads));
  }
  if (options.memory_limit_bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "CPU device: memory limit of ", options.memory_limit_bytes, " bytes"));
  }
  if (options.cpu_level > DetectCpuLevel()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "CPU device: level x86-64-v", static_cast<int>(options.cpu_level),
        " asked for, this host runs x86-64-v",
        static_cast<int>(DetectCpuLevel())));
  }
  if (cpu::device_exists.exchange(true)) {
    return absl::FailedPreconditionError(
        "CPU device: this process has one already");
  }
  auto allocator = cpu::ArenaAllocator::Make(options.memory_limit_bytes);
  if (!allocator.ok()) {
    cpu::device_exists = false;
    return allocator.status();
  }
  const char* policy = std::getenv("OMP_WAIT_POLICY");
  if (options.passive_waiting && options.threads > 1 &&
      (policy == nullptr || !absl::EqualsIgnoreCase(policy, "passive"))) {
    LOG(WARNING) << "ranks share cores, but waiting threads will spin: start "
                    "the process with OMP_WAIT_POLICY=passive";
  }
  const cpu::Bf16Product product = cpu::DetectBf16Product(options.cpu_level);
  cpu::LimitOneDnn(options.cpu_level, product);
  return std::make_unique<cpu::CpuDevice>(
      *std::move(allocator), options.cpu_level, product, options.threads);
}

}  // namespace lockstep
