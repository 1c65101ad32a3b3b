#include "worker/dist/reduction.h"

#include <algorithm>
#include <cstring>

#include "common/log.h"

namespace lockstep {
namespace {

// Elements reduced at a time: the partial result stays in the first cache.
constexpr int64_t kBlock = 1024;

struct Sum {
  static float Apply(float a, float b) { return a + b; }
};

// NaN on either side gives NaN.
struct Max {
  static float Apply(float a, float b) { return (a > b || a != a) ? a : b; }
};

float ToFloat(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

uint16_t ToBFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  // A NaN keeps its upper bits and stays quiet.
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet
                                                                  : rounded);
}

template <typename Op>
void ReduceFloat(absl::Span<const void* const> inputs, float* out,
                 int64_t count) {
  if (inputs.size() == 2) {
    const float* a = static_cast<const float*>(inputs[0]);
    const float* b = static_cast<const float*>(inputs[1]);
    for (int64_t i = 0; i < count; ++i) out[i] = Op::Apply(a[i], b[i]);
    return;
  }
  alignas(64) float partial[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t n = std::min(kBlock, count - begin);
    std::memcpy(partial, static_cast<const float*>(inputs[0]) + begin,
                n * sizeof(float));
    for (size_t k = 1; k < inputs.size(); ++k) {
      const float* input = static_cast<const float*>(inputs[k]) + begin;
      for (int64_t i = 0; i < n; ++i) {
        partial[i] = Op::Apply(partial[i], input[i]);
      }
    }
    std::memcpy(out + begin, partial, n * sizeof(float));
  }
}

template <typename Op>
void ReduceBFloat16(absl::Span<const void* const> inputs, uint16_t* out,
                    int64_t count) {
  alignas(64) float partial[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t n = std::min(kBlock, count - begin);
    const uint16_t* first = static_cast<const uint16_t*>(inputs[0]) + begin;
    for (int64_t i = 0; i < n; ++i) partial[i] = ToFloat(first[i]);
    for (size_t k = 1; k < inputs.size(); ++k) {
      const uint16_t* input = static_cast<const uint16_t*>(inputs[k]) + begin;
      for (int64_t i = 0; i < n; ++i) {
        partial[i] = Op::Apply(partial[i], ToFloat(input[i]));
      }
    }
    for (int64_t i = 0; i < n; ++i) out[begin + i] = ToBFloat16(partial[i]);
  }
}

template <typename Op>
void ReduceAs(absl::Span<const void* const> inputs, void* out, int64_t count,
              DType dtype) {
  CHECK(dtype == DType::kFloat32 || dtype == DType::kBFloat16)
      << "reducing " << Name(dtype);
  if (dtype == DType::kFloat32) {
    ReduceFloat<Op>(inputs, static_cast<float*>(out), count);
  } else {
    ReduceBFloat16<Op>(inputs, static_cast<uint16_t*>(out), count);
  }
}

}  // namespace

void ReduceInOrder(absl::Span<const void* const> inputs, void* out,
                   int64_t count, DType dtype, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return ReduceAs<Sum>(inputs, out, count, dtype);
    case ReduceOp::kMax:
      return ReduceAs<Max>(inputs, out, count, dtype);
  }
}

}  // namespace lockstep
