// Tolerances: how far a kernel's result may lie from the fp64 reference. The
// one table of numeric tests.
//
// u is the unit roundoff: 2^-24 in fp32, 2^-8 in bf16 (round to nearest: half a
// unit in the last of 24 and 8 places).
//
// Element-wise results pass a few roundings and one exponential (2 ulp = 4 u):
// 16 u of fp32, relative to the larger of the result and the terms it is the
// sum of. A sum of n products has an error of at most n u sum |x y|, in
// practice a random walk of sqrt(n) steps (Higham, Accuracy and Stability of
// Numerical Algorithms, section 4.2): 4 sqrt(n) u + 16 u, relative to the
// largest entry of the result, whose size is about that of sqrt(n) terms. A
// bf16 result has one rounding on top, u of bf16. Where a bf16 tensor that was
// rounded before enters (the output of attention in its backward pass), its
// error enters too: `roundings`.
#ifndef LOCKSTEP_TESTS_TESTING_TOLERANCES_H_
#define LOCKSTEP_TESTS_TESTING_TOLERANCES_H_

#include <cmath>
#include <cstdint>

#include "common/dtype.h"

namespace lockstep {
namespace testing {

inline constexpr double kFp32Roundoff = 1.0 / (1 << 24);
inline constexpr double kBf16Roundoff = 1.0 / (1 << 8);

// Of a result stored as `dtype` after sums of `terms` products in fp32,
// relative to the tensor's largest entry (terms = 1: to the entry itself).
inline double Tolerance(DType dtype, int64_t terms = 1, int roundings = 1) {
  const double sums =
      (16.0 + 4.0 * std::sqrt(static_cast<double>(terms))) * kFp32Roundoff;
  return dtype == DType::kBFloat16 ? sums + 1.01 * roundings * kBf16Roundoff
                                   : sums;
}

// Of a gradient taken by central differences of an fp64 reference with step h:
// the third-order term h^2 and the cancellation 2^-53 / h, both near 1e-9 of
// the function's scale at h = 1e-5.
inline constexpr double kDifferenceStep = 1e-5;
inline constexpr double kDifferenceTolerance = 1e-8;

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_TOLERANCES_H_
