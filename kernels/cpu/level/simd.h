// Vectors of floats for one instruction level: GCC/clang vector extensions, and
// intrinsics where those have no word. Included only by sources of this folder,
// which are compiled once per level into namespace LOCKSTEP_LEVEL (v2, v3, v4).
//
// The sources are compiled with -ffp-contract=off: a product and a sum are
// rounded twice unless written as Fma, so results don't hang on what a compiler
// chooses to fuse. (v2 has no fused multiply-add; there Fma rounds twice.)
//
// Loops over n elements are written once for whole vectors and the tail:
//   ForEach(n, [&](int64_t i, auto part) {
//     Store(out + i, Load(x + i, part) * factor, part);
//   });
#ifndef LOCKSTEP_KERNELS_CPU_LEVEL_SIMD_H_
#define LOCKSTEP_KERNELS_CPU_LEVEL_SIMD_H_

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/level/kernels.h"

#define LOCKSTEP_INLINE inline __attribute__((always_inline))

namespace lockstep::cpu::LOCKSTEP_LEVEL {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

typedef float F32 __attribute__((vector_size(4 * kLanes)));
typedef int32_t I32 __attribute__((vector_size(4 * kLanes)));
typedef uint32_t U32 __attribute__((vector_size(4 * kLanes)));
typedef uint16_t U16 __attribute__((vector_size(2 * kLanes)));
// The same in memory, at any address.
typedef float F32Memory
    __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef uint16_t U16Memory
    __attribute__((vector_size(2 * kLanes), aligned(2), may_alias));

// A whole vector, or its first `count` lanes (0 < count < kLanes).
struct Whole {};
struct Part {
  int count;
};

template <typename Body>
LOCKSTEP_INLINE void ForEach(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, Whole{});
  if (i < n) body(i, Part{static_cast<int>(n - i)});
}

LOCKSTEP_INLINE F32 Splat(float x) {
#if defined(__AVX512F__)
  return F32(_mm512_set1_ps(x));
#elif defined(__AVX2__)
  return F32(_mm256_set1_ps(x));
#else
  return F32(_mm_set1_ps(x));
#endif
}
LOCKSTEP_INLINE U32 SplatBits(uint32_t x) { return U32{} + x; }
// 0, 1, 2, ...
LOCKSTEP_INLINE I32 LaneNumbers() {
  I32 lane = {};
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  return lane;
}

LOCKSTEP_INLINE F32 ToF32(I32 x) { return __builtin_convertvector(x, F32); }
LOCKSTEP_INLINE I32 ToI32(F32 x) { return __builtin_convertvector(x, I32); }

// --- loads and stores

LOCKSTEP_INLINE F32 Load(const float* p, Whole) {
  return *reinterpret_cast<const F32Memory*>(p);
}
LOCKSTEP_INLINE void Store(float* p, F32 x, Whole) {
  *reinterpret_cast<F32Memory*>(p) = x;
}

// Lanes past `part` are 0.
LOCKSTEP_INLINE F32 Load(const float* p, Part part) {
#if defined(__AVX512F__)
  return F32(_mm512_maskz_loadu_ps((1u << part.count) - 1, p));
#else
  F32 x = {};
  for (int i = 0; i < part.count; ++i) x[i] = p[i];
  return x;
#endif
}
LOCKSTEP_INLINE void Store(float* p, F32 x, Part part) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, (1u << part.count) - 1, __m512(x));
#else
  for (int i = 0; i < part.count; ++i) p[i] = x[i];
#endif
}

LOCKSTEP_INLINE F32 Widen(U16 bits) {
  return F32(__builtin_convertvector(bits, U32) << 16);
}
// Round to nearest even; NaN stays NaN.
LOCKSTEP_INLINE U16 Narrow(F32 x) {
  const U32 bits = U32(x);
  const U32 rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const U32 quiet = (bits >> 16) | 0x40;
  return __builtin_convertvector(x == x ? rounded : quiet, U16);
}

LOCKSTEP_INLINE F32 Load(const Bf16* p, Whole) {
  return Widen(*reinterpret_cast<const U16Memory*>(p));
}
LOCKSTEP_INLINE void Store(Bf16* p, F32 x, Whole) {
  *reinterpret_cast<U16Memory*>(p) = Narrow(x);
}
LOCKSTEP_INLINE F32 Load(const Bf16* p, Part part) {
  U16 bits = {};
  for (int i = 0; i < part.count; ++i) bits[i] = p[i].bits;
  return Widen(bits);
}
LOCKSTEP_INLINE void Store(Bf16* p, F32 x, Part part) {
  const U16 bits = Narrow(x);
  for (int i = 0; i < part.count; ++i) p[i].bits = bits[i];
}

// --- arithmetic

// a * b + c
LOCKSTEP_INLINE F32 Fma(F32 a, F32 b, F32 c) {
#if defined(__AVX512F__)
  return F32(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#elif defined(__AVX2__)
  return F32(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#else
  return a * b + c;
#endif
}
LOCKSTEP_INLINE F32 Fma(float a, F32 b, F32 c) { return Fma(Splat(a), b, c); }

LOCKSTEP_INLINE F32 Sqrt(F32 x) {
#if defined(__AVX512F__)
  return F32(_mm512_sqrt_ps(__m512(x)));
#elif defined(__AVX2__)
  return F32(_mm256_sqrt_ps(__m256(x)));
#else
  return F32(_mm_sqrt_ps(__m128(x)));
#endif
}
LOCKSTEP_INLINE float SqrtScalar(float x) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
}

// The larger of both; NaN where `b` is NaN.
LOCKSTEP_INLINE F32 Max(F32 a, F32 b) { return a > b ? a : b; }
LOCKSTEP_INLINE F32 Min(F32 a, F32 b) { return a < b ? a : b; }

// First `part` lanes of x, `other` in the rest.
LOCKSTEP_INLINE F32 Keep(F32 x, F32, Whole) { return x; }
LOCKSTEP_INLINE F32 Keep(F32 x, F32 other, Part part) {
  return LaneNumbers() < part.count ? x : other;
}

// --- across lanes, in a fixed tree

#if defined(__AVX512F__)
LOCKSTEP_INLINE __m256 Half(F32 x, int which) {
  return which == 0 ? _mm512_castps512_ps256(__m512(x))
                    : _mm256_castpd_ps(_mm512_extractf64x4_pd(
                          _mm512_castps_pd(__m512(x)), 1));
}
#endif
#if defined(__AVX2__)
LOCKSTEP_INLINE __m128 Half(__m256 x, int which) {
  return which == 0 ? _mm256_castps256_ps128(x) : _mm256_extractf128_ps(x, 1);
}
#endif
LOCKSTEP_INLINE float Sum4(__m128 x) {
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}
LOCKSTEP_INLINE float Max4(__m128 x) {
  x = _mm_max_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
}
LOCKSTEP_INLINE float Sum(F32 x) {
#if defined(__AVX512F__)
  const __m256 y = _mm256_add_ps(Half(x, 0), Half(x, 1));
  return Sum4(_mm_add_ps(Half(y, 0), Half(y, 1)));
#elif defined(__AVX2__)
  return Sum4(_mm_add_ps(Half(__m256(x), 0), Half(__m256(x), 1)));
#else
  return Sum4(__m128(x));
#endif
}
// Largest lane; lanes hold no NaN.
LOCKSTEP_INLINE float Largest(F32 x) {
#if defined(__AVX512F__)
  const __m256 y = _mm256_max_ps(Half(x, 0), Half(x, 1));
  return Max4(_mm_max_ps(Half(y, 0), Half(y, 1)));
#elif defined(__AVX2__)
  return Max4(_mm_max_ps(Half(__m256(x), 0), Half(__m256(x), 1)));
#else
  return Max4(__m128(x));
#endif
}

// Sum over i of body(i, part), whose lanes past `part` must be 0. Four vectors
// are summed side by side, to hide the latency of additions.
template <typename Body>
LOCKSTEP_INLINE float SumOver(int64_t n, const Body& body) {
  F32 sum0 = {}, sum1 = {}, sum2 = {}, sum3 = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    sum0 += body(i, Whole{});
    sum1 += body(i + kLanes, Whole{});
    sum2 += body(i + 2 * kLanes, Whole{});
    sum3 += body(i + 3 * kLanes, Whole{});
  }
  for (; i + kLanes <= n; i += kLanes) sum0 += body(i, Whole{});
  if (i < n) sum1 += body(i, Part{static_cast<int>(n - i)});
  return Sum((sum0 + sum1) + (sum2 + sum3));
}

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL

#endif  // LOCKSTEP_KERNELS_CPU_LEVEL_SIMD_H_
