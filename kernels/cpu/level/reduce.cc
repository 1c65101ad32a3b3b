#include <stdint.h>

#include "kernels/cpu/level/kernels.h"
#include "kernels/cpu/level/simd.h"

namespace lockstep::cpu::LOCKSTEP_LEVEL {
namespace {

// Rows summed in registers before they are added to the total: bounds the
// rounding error, and keeps the block of rows in the second-level cache.
constexpr int64_t kRowBlock = 64;

template <int kVectors, typename T, typename Width>
LOCKSTEP_INLINE void SumStrip(const T* x, int64_t stride, int64_t rows,
                              bool accumulate, float* out, Width part) {
  F32 sum[kVectors] = {};
  for (int64_t row = 0; row < rows; ++row) {
    for (int v = 0; v < kVectors; ++v) {
      sum[v] += Load(x + row * stride + v * kLanes, part);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    if (accumulate) sum[v] += Load(out + v * kLanes, part);
    Store(out + v * kLanes, sum[v], part);
  }
}

template <typename T>
void ColumnSum(const void* x, int64_t stride, int64_t rows, int64_t cols,
               bool accumulate, float* out) {
  const T* in = static_cast<const T*>(x);
  constexpr int kVectors = 8;
  for (int64_t begin = 0; begin == 0 || begin < rows; begin += kRowBlock) {
    const int64_t count = rows - begin < kRowBlock ? rows - begin : kRowBlock;
    const T* block = in + begin * stride;
    const bool add = accumulate || begin > 0;
    int64_t col = 0;
    for (; col + kVectors * kLanes <= cols; col += kVectors * kLanes) {
      SumStrip<kVectors>(block + col, stride, count, add, out + col, Whole{});
    }
    for (; col + kLanes <= cols; col += kLanes) {
      SumStrip<1>(block + col, stride, count, add, out + col, Whole{});
    }
    if (col < cols) {
      SumStrip<1>(block + col, stride, count, add, out + col,
                  Part{static_cast<int>(cols - col)});
    }
  }
}

double SquareSum(const float* x, int64_t n) {
  return SumOver(n, [&](int64_t i, auto part) {
    const F32 v = Load(x + i, part);
    return v * v;
  });
}

}  // namespace

const ReduceKernels kReduceKernels = {
    .column_sum = {ColumnSum<float>, ColumnSum<Bf16>},
    .square_sum = SquareSum,
};

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL
