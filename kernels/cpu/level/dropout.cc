#include <stdint.h>

#include "kernels/cpu/level/kernels.h"
#include "kernels/cpu/level/philox.h"
#include "kernels/cpu/level/simd.h"

namespace lockstep::cpu::LOCKSTEP_LEVEL {
namespace {

const float* FactorsOf(const RowDropout& dropout, int64_t row, int64_t first,
                       int64_t n, float* factors) {
  return Factors(dropout, row, first, n, factors);
}

template <typename T>
void Row(const RowDropout& dropout, int64_t row, int64_t first, const void* x,
         void* out, int64_t n) {
  const T* in = static_cast<const T*>(x);
  T* o = static_cast<T*>(out);
  ForFactors(dropout, row, first, n,
             [&](int64_t begin, int64_t count, const float* factors) {
               ForEach(count, [&](int64_t i, auto part) {
                 Store(o + begin + i,
                       Load(in + begin + i, part) * Load(factors + i, part),
                       part);
               });
             });
}

}  // namespace

const DropoutKernels kDropoutKernels = {
    .factors = FactorsOf,
    .row = {Row<float>, Row<Bf16>},
};

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL
