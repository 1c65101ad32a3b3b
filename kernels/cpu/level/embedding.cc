#include <stdint.h>

#include "kernels/cpu/level/kernels.h"
#include "kernels/cpu/level/philox.h"
#include "kernels/cpu/level/simd.h"

namespace lockstep::cpu::LOCKSTEP_LEVEL {
namespace {

template <typename W, typename T>
void Forward(const RowDropout& dropout, int64_t row, const void* token_row,
             const void* position_row, void* out, int64_t n) {
  const W* token = static_cast<const W*>(token_row);
  const W* position = static_cast<const W*>(position_row);
  T* o = static_cast<T*>(out);
  const auto value = [&](int64_t i, auto part) {
    F32 sum{};
    if (token != nullptr) sum = Load(token + i, part);
    if (position != nullptr) sum += Load(position + i, part);
    return sum;
  };
  if (dropout.active) {
    ForFactors(dropout, row, 0, n,
               [&](int64_t begin, int64_t count, const float* factors) {
                 ForEach(count, [&](int64_t i, auto part) {
                   Store(o + begin + i,
                         value(begin + i, part) * Load(factors + i, part),
                         part);
                 });
               });
  } else {
    ForEach(n,
            [&](int64_t i, auto part) { Store(o + i, value(i, part), part); });
  }
}

template <typename T>
void Backward(const RowDropout& dropout, int64_t row, int64_t first,
              const void* dout, float* token_gradient, float* position_gradient,
              int64_t n) {
  const T* grad = static_cast<const T*>(dout);
  const auto add = [&](int64_t i, F32 value, auto part) {
    if (token_gradient != nullptr) {
      Store(token_gradient + i, Load(token_gradient + i, part) + value, part);
    }
    if (position_gradient != nullptr) {
      Store(position_gradient + i, Load(position_gradient + i, part) + value,
            part);
    }
  };
  if (dropout.active) {
    ForFactors(dropout, row, first, n,
               [&](int64_t begin, int64_t count, const float* factors) {
                 ForEach(count, [&](int64_t i, auto part) {
                   add(begin + i,
                       Load(grad + begin + i, part) * Load(factors + i, part),
                       part);
                 });
               });
  } else {
    ForEach(n,
            [&](int64_t i, auto part) { add(i, Load(grad + i, part), part); });
  }
}

template <typename T>
void ScaledCopy(float factor, const void* x, void* out, int64_t n) {
  const T* in = static_cast<const T*>(x);
  T* o = static_cast<T*>(out);
  ForEach(n, [&](int64_t i, auto part) {
    Store(o + i, Load(in + i, part) * factor, part);
  });
}

template <typename T>
void AccumulateRow(const void* x, float* sum, int64_t n) {
  const T* in = static_cast<const T*>(x);
  ForEach(n, [&](int64_t i, auto part) {
    Store(sum + i, Load(sum + i, part) + Load(in + i, part), part);
  });
}

template <typename T>
void ScaledStore(float factor, const float* x, void* out, int64_t n) {
  T* o = static_cast<T*>(out);
  ForEach(n, [&](int64_t i, auto part) {
    Store(o + i, Load(x + i, part) * factor, part);
  });
}

}  // namespace

const EmbeddingKernels kEmbeddingKernels = {
    .forward = {{Forward<float, float>, Forward<float, Bf16>},
                {Forward<Bf16, float>, Forward<Bf16, Bf16>}},
    .backward = {Backward<float>, Backward<Bf16>},
    .scaled_copy = {ScaledCopy<float>, ScaledCopy<Bf16>},
    .accumulate = {AccumulateRow<float>, AccumulateRow<Bf16>},
    .scaled_store = {ScaledStore<float>, ScaledStore<Bf16>},
};

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL
