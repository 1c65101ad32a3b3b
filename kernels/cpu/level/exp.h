// Exponential and logarithm without libm, equal on all hosts of a level.
#ifndef LOCKSTEP_KERNELS_CPU_LEVEL_EXP_H_
#define LOCKSTEP_KERNELS_CPU_LEVEL_EXP_H_

#include <stdint.h>
#include <string.h>

#include "kernels/cpu/level/simd.h"

namespace lockstep::cpu::LOCKSTEP_LEVEL {

// e^x within 2 ulp: x = n ln 2 + r with |r| <= ln 2 / 2, e^r by a polynomial of
// degree 7 (coefficients of Cephes' expf). 0 below -87.33, where the result
// would be subnormal; e^88 above 88, so that it is never infinite. NaN stays.
LOCKSTEP_INLINE F32 Exp(F32 x) {
  const F32 clamped = x > 88.0f ? Splat(88.0f) : x;
  // Adding and taking away 1.5 * 2^23 rounds to an integer.
  const F32 n = (clamped * 1.44269504088896341f + 12582912.0f) - 12582912.0f;
  F32 r = Fma(n, Splat(-0.693359375f), clamped);
  r = Fma(n, Splat(2.12194440e-4f), r);
  F32 p = Fma(Splat(1.9875691500e-4f), r, Splat(1.3981999507e-3f));
  p = Fma(p, r, Splat(8.3334519073e-3f));
  p = Fma(p, r, Splat(4.1665795894e-2f));
  p = Fma(p, r, Splat(1.6666665459e-1f));
  p = Fma(p, r, Splat(5.0000001201e-1f));
  p = Fma(p, r * r, r) + 1.0f;
  const F32 power = F32((ToI32(n) + 127) << 23);
  return x < -87.33f ? F32{} : p * power;
}

// Natural logarithm of a positive normal number, for one value a row: in
// double, so good to the last bit of a float.
LOCKSTEP_INLINE double Log(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  // x = 2^exponent * m with m in [sqrt(1/2), sqrt(2)).
  const int32_t exponent = static_cast<int32_t>(bits - 0x3f3504f3) >> 23;
  bits -= static_cast<uint32_t>(exponent) << 23;
  float mantissa;
  memcpy(&mantissa, &bits, sizeof mantissa);
  // log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172.
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double z = s * s;
  double sum = 1.0 / 15;
  sum = sum * z + 1.0 / 13;
  sum = sum * z + 1.0 / 11;
  sum = sum * z + 1.0 / 9;
  sum = sum * z + 1.0 / 7;
  sum = sum * z + 1.0 / 5;
  sum = sum * z + 1.0 / 3;
  sum = sum * z + 1.0;
  return exponent * 0.69314718055994530942 + 2.0 * s * sum;
}

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL

#endif  // LOCKSTEP_KERNELS_CPU_LEVEL_EXP_H_
