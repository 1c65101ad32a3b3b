// Small matrix products in registers: what attention is made of.
#ifndef LOCKSTEP_KERNELS_CPU_LEVEL_TILE_PRODUCT_H_
#define LOCKSTEP_KERNELS_CPU_LEVEL_TILE_PRODUCT_H_

#include <stdint.h>

#include "kernels/cpu/level/simd.h"

namespace lockstep::cpu::LOCKSTEP_LEVEL {

// A tile of results that fits the vector registers (32, 16 and 16), beside one
// row of B and one value of A.
#if defined(__AVX512F__)
inline constexpr int kTileRows = 6, kTileVectors = 4;
#elif defined(__AVX2__)
inline constexpr int kTileRows = 6, kTileVectors = 2;
#else
inline constexpr int kTileRows = 4, kTileVectors = 2;
#endif

enum class Left { kPlain, kTransposed };
enum class Result { kWrite, kAdd };

struct Matrix {
  const float* data;
  int64_t stride;
};
struct Output {
  float* data;
  int64_t stride;
};

template <int kRows, int kVectors, Left kLeft, Result kResult>
__attribute__((noinline)) void MultiplyTile(int64_t depth, const float* a,
                                            int64_t a_stride, const float* b,
                                            int64_t b_stride, float* c,
                                            int64_t c_stride) {
  F32 sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = kResult == Result::kAdd
                      ? Load(c + r * c_stride + v * kLanes, Whole{})
                      : F32{};
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    F32 row[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      row[v] = Load(b + k * b_stride + v * kLanes, Whole{});
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const F32 left = Splat(kLeft == Left::kTransposed ? a[k * a_stride + r]
                                                        : a[r * a_stride + k]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = Fma(left, row[v], sum[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Store(c + r * c_stride + v * kLanes, sum[r][v], Whole{});
    }
  }
}

template <int kRows, Left kLeft, Result kResult>
LOCKSTEP_INLINE void MultiplyStrip(int64_t vectors, int64_t depth,
                                   const float* a, int64_t a_stride,
                                   const float* b, int64_t b_stride, float* c,
                                   int64_t c_stride) {
  if constexpr (kTileVectors == 4) {
    if (vectors == 4) {
      MultiplyTile<kRows, 4, kLeft, kResult>(depth, a, a_stride, b, b_stride, c,
                                             c_stride);
      return;
    }
    if (vectors == 3) {
      MultiplyTile<kRows, 3, kLeft, kResult>(depth, a, a_stride, b, b_stride, c,
                                             c_stride);
      return;
    }
  }
  if (vectors == 2) {
    MultiplyTile<kRows, 2, kLeft, kResult>(depth, a, a_stride, b, b_stride, c,
                                           c_stride);
  } else {
    MultiplyTile<kRows, 1, kLeft, kResult>(depth, a, a_stride, b, b_stride, c,
                                           c_stride);
  }
}

// c (+)= a b, or a^T b where a is stored as (depth, rows). b and c have
// `vectors` whole vectors of columns. Each result is one chain of fused
// additions along `depth`, whatever tile it falls in.
template <Left kLeft, Result kResult>
LOCKSTEP_INLINE void Multiply(int64_t rows, int64_t vectors, int64_t depth,
                              Matrix a, Matrix b, Output c) {
  const int64_t row_step = kLeft == Left::kTransposed ? 1 : a.stride;
  for (int64_t v = 0; v < vectors; v += kTileVectors) {
    const int64_t count =
        vectors - v < kTileVectors ? vectors - v : kTileVectors;
    const float* right = b.data + v * kLanes;
    float* to = c.data + v * kLanes;
    int64_t r = 0;
    for (; r + kTileRows <= rows; r += kTileRows) {
      MultiplyStrip<kTileRows, kLeft, kResult>(
          count, depth, a.data + r * row_step, a.stride, right, b.stride,
          to + r * c.stride, c.stride);
    }
    for (; r + 2 <= rows; r += 2) {
      MultiplyStrip<2, kLeft, kResult>(count, depth, a.data + r * row_step,
                                       a.stride, right, b.stride,
                                       to + r * c.stride, c.stride);
    }
    if (r < rows) {
      MultiplyStrip<1, kLeft, kResult>(count, depth, a.data + r * row_step,
                                       a.stride, right, b.stride,
                                       to + r * c.stride, c.stride);
    }
  }
}

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL

#endif  // LOCKSTEP_KERNELS_CPU_LEVEL_TILE_PRODUCT_H_
