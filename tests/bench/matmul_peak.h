// The machine's ceiling: the best rate of oneDNN's matmul primitive.
#ifndef LOCKSTEP_TESTS_BENCH_MATMUL_PEAK_H_
#define LOCKSTEP_TESTS_BENCH_MATMUL_PEAK_H_

#include <string>
#include <vector>

#include "common/dtype.h"

namespace lockstep {

struct MatmulRate {
  // "2048 x 768 x 3072 padded".
  std::string what;
  double flops_per_second = 0.0;
};

// Rates over square and model shapes, with plain, padded and blocked operands,
// `seconds` each, best of the calls in that time. Empty if the library can't
// multiply in `dtype` on this machine.
std::vector<MatmulRate> MeasureMatmulRates(DType dtype, double seconds);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCH_MATMUL_PEAK_H_
