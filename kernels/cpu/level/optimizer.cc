#include <stdint.h>

#include "kernels/cpu/level/kernels.h"
#include "kernels/cpu/level/simd.h"

namespace lockstep::cpu::LOCKSTEP_LEVEL {
namespace {

template <typename Width>
LOCKSTEP_INLINE void StoreParameter(float* parameter, Bf16* compute, int64_t i,
                                    F32 value, Width part) {
  Store(parameter + i, value, part);
  if (compute != nullptr) Store(compute + i, value, part);
}

// Updates both moments of elements i..; gives m^ / (sqrt(v^) + epsilon).
template <typename Width>
LOCKSTEP_INLINE F32 Moments(const AdamStep& step, const float* gradient,
                            float* first_moment, float* second_moment,
                            int64_t i, Width part) {
  const F32 g = Load(gradient + i, part) * step.clip_factor;
  const F32 m =
      Fma(step.beta1, Load(first_moment + i, part), g * (1.0f - step.beta1));
  const F32 v = Fma(step.beta2, Load(second_moment + i, part),
                    g * g * (1.0f - step.beta2));
  Store(first_moment + i, m, part);
  Store(second_moment + i, v, part);
  const F32 denominator =
      Fma(Sqrt(v), Splat(step.inverse_root_correction2), Splat(step.epsilon));
  return m * step.inverse_correction1 / denominator;
}

void AdamW(const AdamStep& step, float* parameter, const float* gradient,
           float* first_moment, float* second_moment, Bf16* compute,
           int64_t n) {
  const float keep = 1.0f - step.learning_rate * step.weight_decay;
  ForEach(n, [&](int64_t i, auto part) {
    const F32 u = Moments(step, gradient, first_moment, second_moment, i, part);
    const F32 p = Load(parameter + i, part) * keep;
    StoreParameter(parameter, compute, i, Fma(-step.learning_rate, u, p), part);
  });
}

void Sgd(const MomentumStep& step, float* parameter, const float* gradient,
         float* momentum, Bf16* compute, int64_t n) {
  ForEach(n, [&](int64_t i, auto part) {
    const F32 p = Load(parameter + i, part);
    const F32 g =
        Fma(step.weight_decay, p, Load(gradient + i, part) * step.clip_factor);
    const F32 b = Fma(step.momentum, Load(momentum + i, part), g);
    Store(momentum + i, b, part);
    StoreParameter(parameter, compute, i, Fma(-step.learning_rate, b, p), part);
  });
}

void Lars(const MomentumStep& step, float* parameter, const float* gradient,
          float* momentum, Bf16* compute, int64_t n) {
  const float rate = step.learning_rate * step.ratio;
  ForEach(n, [&](int64_t i, auto part) {
    const F32 p = Load(parameter + i, part);
    const F32 g =
        Fma(step.weight_decay, p, Load(gradient + i, part) * step.clip_factor);
    const F32 b = Fma(rate, g, Load(momentum + i, part) * step.momentum);
    Store(momentum + i, b, part);
    StoreParameter(parameter, compute, i, p - b, part);
  });
}

void LambMoments(const AdamStep& step, const float* parameter, float* gradient,
                 float* first_moment, float* second_moment, int64_t n) {
  ForEach(n, [&](int64_t i, auto part) {
    const F32 u = Moments(step, gradient, first_moment, second_moment, i, part);
    Store(gradient + i, Fma(step.weight_decay, Load(parameter + i, part), u),
          part);
  });
}

void LambApply(float rate, float* parameter, const float* update, Bf16* compute,
               int64_t n) {
  ForEach(n, [&](int64_t i, auto part) {
    StoreParameter(
        parameter, compute, i,
        Fma(-rate, Load(update + i, part), Load(parameter + i, part)), part);
  });
}

}  // namespace

const OptimizerKernels kOptimizerKernels = {
    .adamw = AdamW,
    .sgd = Sgd,
    .lars = Lars,
    .lamb_moments = LambMoments,
    .lamb_apply = LambApply,
};

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL
