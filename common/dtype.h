// Element types of tensors. Free of proto and Abseil headers, so that kernels
// can include it; common/spec/ holds the one mapping to the proto enum.
#ifndef LOCKSTEP_COMMON_DTYPE_H_
#define LOCKSTEP_COMMON_DTYPE_H_

#include <cstdint>

namespace lockstep {

enum class DType : uint8_t { kFloat32, kBFloat16, kInt32, kUInt32 };

// Bytes of one element.
constexpr int64_t SizeOf(DType dtype) {
  return dtype == DType::kBFloat16 ? 2 : 4;
}

constexpr const char* Name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "fp32";
    case DType::kBFloat16:
      return "bf16";
    case DType::kInt32:
      return "int32";
    case DType::kUInt32:
      return "uint32";
  }
  return "unknown";
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_DTYPE_H_
