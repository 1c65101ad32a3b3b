// Blocks of attention: their sizes, which keys a query sees, and how rows of q,
// k and v are brought into fp32 blocks.
#ifndef LOCKSTEP_KERNELS_CPU_LEVEL_ATTENTION_BLOCK_H_
#define LOCKSTEP_KERNELS_CPU_LEVEL_ATTENTION_BLOCK_H_

#include <stdint.h>

#include "kernels/cpu/level/simd.h"

namespace lockstep::cpu::LOCKSTEP_LEVEL {

// Scores of one block are 24 KB: they stay in the first-level cache, beside the
// strip of keys in use. Key blocks start at multiples of kKeyBlock within the
// segment, so a row's result doesn't depend on what is computed with it.
inline constexpr int64_t kQueryBlock = 48;
inline constexpr int64_t kKeyBlock = 128;

LOCKSTEP_INLINE int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }
LOCKSTEP_INLINE int64_t Most(int64_t a, int64_t b) { return a > b ? a : b; }
LOCKSTEP_INLINE int64_t RoundUpToLanes(int64_t n) {
  return (n + kLanes - 1) / kLanes * kLanes;
}

// Keys [begin, end).
struct KeyRange {
  int64_t begin, end;
};

// Keys that query `i` sees. Both bounds rise with i.
LOCKSTEP_INLINE KeyRange VisibleKeys(const AttentionGroup& group, int64_t i) {
  const int64_t place = i + group.shift;
  KeyRange range = {0, group.keys};
  if (group.causal) range.end = Most(Least(place + 1, group.keys), 0);
  if (group.window > 0) {
    range.begin = Most(Least(place - group.window + 1, group.keys), 0);
  }
  if (range.begin > range.end) range.begin = range.end;
  return range;
}

// Rows of a head lie thousands of bytes apart, further than the processor's
// prefetchers reach: rows to come are asked for by hand. (Addresses beyond the
// tensor do no harm.)
inline constexpr int64_t kPrefetchRows = 8;
template <typename T>
LOCKSTEP_INLINE void PrefetchRow(const T* row, int64_t width) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < width; i += kLine) {
    _mm_prefetch(reinterpret_cast<const char*>(row + i), _MM_HINT_T0);
  }
}

// Copies rows of `width` elements, times `factor`, to rows of `padded` floats;
// the rest of a row is 0.
template <typename T>
LOCKSTEP_INLINE void PackRows(const T* x, int64_t stride, int64_t rows,
                              int64_t width, float factor, float* out,
                              int64_t padded) {
  for (int64_t row = 0; row < rows; ++row) {
    const T* from = x + row * stride;
    float* to = out + row * padded;
    PrefetchRow(from + kPrefetchRows * stride, width);
    ForEach(width, [&](int64_t i, auto part) {
      // Whole vectors are stored: lanes past the row's end are 0.
      Store(to + i, Load(from + i, part) * factor, Whole{});
    });
  }
}

LOCKSTEP_INLINE __m128 Load4(const float* p) { return _mm_loadu_ps(p); }
LOCKSTEP_INLINE __m128 Load4(const Bf16* p) {
  const __m128i bits = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(bits), 16));
}
LOCKSTEP_INLINE float ToFloat(float x) { return x; }
LOCKSTEP_INLINE float ToFloat(Bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// out[d][row] = x[row][d], out's rows kKeyBlock apart; rows past `rows`, up to
// whole vectors, are 0.
template <typename T>
LOCKSTEP_INLINE void PackTransposed(const T* x, int64_t stride, int64_t rows,
                                    int64_t width, float* out) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    const T* from = x + row * stride;
    for (int64_t i = 0; i < 4; ++i) {
      PrefetchRow(from + (kPrefetchRows + i) * stride, width);
    }
    int64_t d = 0;
    for (; d + 4 <= width; d += 4) {
      __m128 a = Load4(from + d);
      __m128 b = Load4(from + stride + d);
      __m128 c = Load4(from + 2 * stride + d);
      __m128 e = Load4(from + 3 * stride + d);
      _MM_TRANSPOSE4_PS(a, b, c, e);
      float* to = out + d * kKeyBlock + row;
      _mm_storeu_ps(to, a);
      _mm_storeu_ps(to + kKeyBlock, b);
      _mm_storeu_ps(to + 2 * kKeyBlock, c);
      _mm_storeu_ps(to + 3 * kKeyBlock, e);
    }
    for (; d < width; ++d) {
      for (int64_t i = 0; i < 4; ++i) {
        out[d * kKeyBlock + row + i] = ToFloat(from[i * stride + d]);
      }
    }
  }
  const int64_t padded = RoundUpToLanes(rows);
  for (; row < padded; ++row) {
    for (int64_t d = 0; d < width; ++d) {
      out[d * kKeyBlock + row] =
          row < rows ? ToFloat(x[row * stride + d]) : 0.0f;
    }
  }
}

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL

#endif  // LOCKSTEP_KERNELS_CPU_LEVEL_ATTENTION_BLOCK_H_
