// Philox4x32-10 (Salmon et al., SC 2011), a vector of counters at a time.
#ifndef LOCKSTEP_KERNELS_CPU_LEVEL_PHILOX_H_
#define LOCKSTEP_KERNELS_CPU_LEVEL_PHILOX_H_

#include <stdint.h>

#include "kernels/cpu/level/simd.h"

namespace lockstep::cpu::LOCKSTEP_LEVEL {

// Low and high words of a * b, lane by lane.
LOCKSTEP_INLINE void MultiplyWide(uint32_t a, U32 b, U32* low, U32* high) {
#if defined(__AVX512F__)
  const __m512i factor = _mm512_set1_epi32(static_cast<int>(a));
  const __m512i even = _mm512_mul_epu32(factor, __m512i(b));
  const __m512i odd =
      _mm512_mul_epu32(factor, _mm512_srli_epi64(__m512i(b), 32));
  *low = b * a;
  *high =
      U32(_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd));
#elif defined(__AVX2__)
  const __m256i factor = _mm256_set1_epi32(static_cast<int>(a));
  const __m256i even = _mm256_mul_epu32(factor, __m256i(b));
  const __m256i odd =
      _mm256_mul_epu32(factor, _mm256_srli_epi64(__m256i(b), 32));
  *low = b * a;
  *high = U32(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa));
#else
  const __m128i factor = _mm_set1_epi32(static_cast<int>(a));
  const __m128i even = _mm_mul_epu32(factor, __m128i(b));
  const __m128i odd = _mm_mul_epu32(factor, _mm_srli_epi64(__m128i(b), 32));
  *low = b * a;
  *high = U32(_mm_blend_epi16(_mm_srli_epi64(even, 32), odd, 0xcc));
#endif
}

// The four words of counters (c0, c1, c2, c3) under `key`.
LOCKSTEP_INLINE void Philox(uint64_t key, U32 c0, U32 c1, U32 c2, U32 c3,
                            U32 words[4]) {
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    U32 low0, high0, low1, high1;
    MultiplyWide(0xD2511F53u, c0, &low0, &high0);
    MultiplyWide(0xCD9E8D57u, c2, &low1, &high1);
    c0 = high1 ^ c1 ^ key0;
    c1 = low1;
    c2 = high0 ^ c3 ^ key1;
    c3 = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

// (a0, b0, a1, b1, ...) of the lower and upper halves of a and b.
LOCKSTEP_INLINE void Interleave(F32 a, F32 b, F32* lower, F32* upper) {
#if defined(__AVX512F__)
  *lower = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5,
                                   21, 6, 22, 7, 23);
  *upper = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                                   13, 29, 14, 30, 15, 31);
#elif defined(__AVX2__)
  *lower = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  *upper = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  *lower = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  *upper = __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

// Dropout factors of elements 4 * group and up, kLanes groups.
LOCKSTEP_INLINE void GroupFactors(const RowDropout& dropout, uint32_t position,
                                  uint32_t sample, uint32_t group,
                                  float* factors) {
  const U32 counter = U32(LaneNumbers()) + group;
  U32 words[4];
  Philox(dropout.key, counter, SplatBits(position), SplatBits(sample),
         SplatBits(dropout.step), words);
  F32 kept[4];
  for (int i = 0; i < 4; ++i) {
    kept[i] = words[i] >= dropout.threshold ? Splat(dropout.scale) : F32{};
  }
  F32 even0, even1, odd0, odd1, out[4];
  Interleave(kept[0], kept[2], &even0, &even1);
  Interleave(kept[1], kept[3], &odd0, &odd1);
  Interleave(even0, odd0, &out[0], &out[1]);
  Interleave(even1, odd1, &out[2], &out[3]);
  for (int i = 0; i < 4; ++i) Store(factors + i * kLanes, out[i], Whole{});
}

// See DropoutKernels::factors. At most 3 values go before the first one and
// 4 * kLanes - 1 behind the last.
LOCKSTEP_INLINE const float* Factors(const RowDropout& dropout, int64_t row,
                                     int64_t first, int64_t n, float* factors) {
  const uint32_t position = static_cast<uint32_t>(dropout.position[row]);
  const uint32_t sample = dropout.sample[row];
  const int64_t skip = first & 3;
  for (int64_t i = 0; i < n + skip; i += 4 * kLanes) {
    GroupFactors(dropout, position, sample,
                 static_cast<uint32_t>((first - skip + i) / 4), factors + i);
  }
  return factors + skip;
}

// Calls body(begin, count, factors) on pieces of n elements of a row.
inline constexpr int64_t kFactorPiece = 512;
template <typename Body>
LOCKSTEP_INLINE void ForFactors(const RowDropout& dropout, int64_t row,
                                int64_t first, int64_t n, const Body& body) {
  float buffer[kFactorPiece + kFactorSlack];
  for (int64_t begin = 0; begin < n; begin += kFactorPiece) {
    const int64_t count = n - begin < kFactorPiece ? n - begin : kFactorPiece;
    body(begin, count, Factors(dropout, row, first + begin, count, buffer));
  }
}

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL

#endif  // LOCKSTEP_KERNELS_CPU_LEVEL_PHILOX_H_
