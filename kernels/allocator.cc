#include "kernels/allocator.h"

namespace lockstep {

const char* Name(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::kParameter:
      return "parameter";
    case MemoryCategory::kGradient:
      return "gradient";
    case MemoryCategory::kOptimizerState:
      return "optimizer state";
    case MemoryCategory::kActivation:
      return "activation";
    case MemoryCategory::kBuffer:
      return "buffer";
  }
  return "unknown";
}

}  // namespace lockstep
