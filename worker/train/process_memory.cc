#include "worker/train/process_memory.h"

#include <fstream>
#include <string>

namespace lockstep {

uint64_t ProcessPeakBytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "VmHWM:") {
      uint64_t kibibytes = 0;
      status >> kibibytes;
      return kibibytes * 1024;
    }
  }
  return 0;
}

v1::MemoryReport MemoryReportOf(const Allocator& allocator) {
  const MemoryUse use = allocator.Use();
  const auto peak = [&](MemoryCategory category) {
    return use.by_category[static_cast<int>(category)].peak_bytes;
  };
  v1::MemoryReport report;
  report.set_peak_bytes(use.total.peak_bytes);
  report.set_process_peak_bytes(ProcessPeakBytes());
  report.set_parameters_bytes(peak(MemoryCategory::kParameter));
  report.set_gradients_bytes(peak(MemoryCategory::kGradient));
  report.set_optimizer_bytes(peak(MemoryCategory::kOptimizerState));
  report.set_activations_bytes(peak(MemoryCategory::kActivation));
  report.set_buffers_bytes(peak(MemoryCategory::kBuffer));
  return report;
}

}  // namespace lockstep
