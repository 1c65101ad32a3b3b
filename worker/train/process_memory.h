// What the operating system says of this process's memory, and the counted use
// as a report.
#ifndef LOCKSTEP_WORKER_TRAIN_PROCESS_MEMORY_H_
#define LOCKSTEP_WORKER_TRAIN_PROCESS_MEMORY_H_

#include <cstdint>

#include "kernels/allocator.h"
#include "lockstep/v1/step_report.pb.h"

namespace lockstep {

// High-water mark of the resident set (VmHWM); 0 where it can't be read.
uint64_t ProcessPeakBytes();

// Peaks of `allocator` and the process's; the rank is left to the caller.
v1::MemoryReport MemoryReportOf(const Allocator& allocator);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_PROCESS_MEMORY_H_
