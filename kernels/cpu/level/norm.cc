#include <stdint.h>

#include "kernels/cpu/level/kernels.h"
#include "kernels/cpu/level/philox.h"
#include "kernels/cpu/level/simd.h"

namespace lockstep::cpu::LOCKSTEP_LEVEL {
namespace {

template <typename T>
LOCKSTEP_INLINE void Normalise(const NormRows& norm, int64_t row, const T* x,
                               T* out) {
  const int64_t n = norm.cols;
  const float inverse_n = 1.0f / static_cast<float>(n);
  float mean = 0.0f;
  if (norm.centred) {
    mean = inverse_n *
           SumOver(n, [&](int64_t i, auto part) { return Load(x + i, part); });
    norm.mean[row] = mean;
  }
  const float variance = inverse_n * SumOver(n, [&](int64_t i, auto part) {
                           const F32 centred =
                               Keep(Load(x + i, part) - mean, F32{}, part);
                           return centred * centred;
                         });
  const float rstd = 1.0f / SqrtScalar(variance + norm.epsilon);
  norm.rstd[row] = rstd;
  if (norm.bias != nullptr) {
    ForEach(n, [&](int64_t i, auto part) {
      const F32 hat = (Load(x + i, part) - mean) * rstd;
      Store(out + i,
            Fma(hat, Load(norm.weight + i, part), Load(norm.bias + i, part)),
            part);
    });
  } else {
    ForEach(n, [&](int64_t i, auto part) {
      const F32 hat = (Load(x + i, part) - mean) * rstd;
      Store(out + i, hat * Load(norm.weight + i, part), part);
    });
  }
}

template <typename T>
void Forward(const NormRows& norm, int64_t row, const void* x, void* out) {
  Normalise(norm, row, static_cast<const T*>(x), static_cast<T*>(out));
}

template <typename T>
void ResidualForward(const NormRows& norm, const RowDropout& dropout,
                     int64_t row, const void* residual, const void* branch,
                     void* sum, void* out) {
  const T* a = static_cast<const T*>(residual);
  const T* b = static_cast<const T*>(branch);
  T* s = static_cast<T*>(sum);
  if (dropout.active) {
    ForFactors(dropout, row, 0, norm.cols,
               [&](int64_t begin, int64_t count, const float* factors) {
                 ForEach(count, [&](int64_t i, auto part) {
                   const F32 dropped =
                       Load(b + begin + i, part) * Load(factors + i, part);
                   Store(s + begin + i, Load(a + begin + i, part) + dropped,
                         part);
                 });
               });
  } else {
    ForEach(norm.cols, [&](int64_t i, auto part) {
      Store(s + i, Load(a + i, part) + Load(b + i, part), part);
    });
  }
  // Of the stored sum, rounded as backward will read it.
  Normalise(norm, row, s, static_cast<T*>(out));
}

// With h = (x - mean) rstd and g = weight dout:
//   dx = rstd (g - mean(g) - h mean(g h)) + dresidual, without mean(g) for RMS.
template <typename T>
void Backward(const NormRows& norm, int64_t row, const void* dout,
              const void* x, const void* dresidual, void* dx, float* dweight,
              float* dbias) {
  const T* grad = static_cast<const T*>(dout);
  const T* in = static_cast<const T*>(x);
  const T* residual = static_cast<const T*>(dresidual);
  T* o = static_cast<T*>(dx);
  const int64_t n = norm.cols;
  const float inverse_n = 1.0f / static_cast<float>(n);
  const float mean = norm.centred ? norm.mean[row] : 0.0f;
  const float rstd = norm.rstd[row];

  F32 sum_g[2] = {}, sum_gh[2] = {};
  const auto first_pass = [&](int64_t i, auto part, int lane) {
    const F32 d = Load(grad + i, part);
    const F32 hat = (Load(in + i, part) - mean) * rstd;
    const F32 g = d * Load(norm.weight + i, part);
    sum_g[lane] += g;
    sum_gh[lane] = Fma(g, hat, sum_gh[lane]);
    Store(dweight + i, Fma(d, hat, Load(dweight + i, part)), part);
    if (dbias != nullptr) Store(dbias + i, d + Load(dbias + i, part), part);
  };
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    first_pass(i, Whole{}, 0);
    first_pass(i + kLanes, Whole{}, 1);
  }
  for (; i + kLanes <= n; i += kLanes) first_pass(i, Whole{}, 0);
  // The tail's missing lanes have d = 0, so they add nothing.
  if (i < n) first_pass(i, Part{static_cast<int>(n - i)}, 1);
  const float mean_g =
      norm.centred ? Sum(sum_g[0] + sum_g[1]) * inverse_n : 0.0f;
  const float mean_gh = Sum(sum_gh[0] + sum_gh[1]) * inverse_n;

  ForEach(n, [&](int64_t j, auto part) {
    const F32 hat = (Load(in + j, part) - mean) * rstd;
    const F32 g = Load(grad + j, part) * Load(norm.weight + j, part);
    F32 result = (g - mean_g - hat * mean_gh) * rstd;
    if (residual != nullptr) result += Load(residual + j, part);
    Store(o + j, result, part);
  });
}

}  // namespace

const NormKernels kNormKernels = {
    .forward = {Forward<float>, Forward<Bf16>},
    .residual_forward = {ResidualForward<float>, ResidualForward<Bf16>},
    .backward = {Backward<float>, Backward<Bf16>},
};

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL
