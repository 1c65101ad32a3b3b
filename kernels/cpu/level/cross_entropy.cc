#include <stdint.h>

#include "kernels/cpu/level/exp.h"
#include "kernels/cpu/level/kernels.h"
#include "kernels/cpu/level/simd.h"

namespace lockstep::cpu::LOCKSTEP_LEVEL {
namespace {

LOCKSTEP_INLINE float At(const float* x, int64_t i) { return x[i]; }
LOCKSTEP_INLINE float At(const Bf16* x, int64_t i) {
  const uint32_t bits = static_cast<uint32_t>(x[i].bits) << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename T>
float LargestOf(const T* x, int64_t n) {
  const F32 lowest = Splat(-__builtin_inff());
  F32 most[4] = {lowest, lowest, lowest, lowest};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int v = 0; v < 4; ++v) {
      most[v] = Max(Load(x + i + v * kLanes, Whole{}), most[v]);
    }
  }
  for (; i + kLanes <= n; i += kLanes) {
    most[0] = Max(Load(x + i, Whole{}), most[0]);
  }
  if (i < n) {
    const Part part = {static_cast<int>(n - i)};
    most[1] = Max(Keep(Load(x + i, part), lowest, part), most[1]);
  }
  return Largest(Max(Max(most[0], most[1]), Max(most[2], most[3])));
}

template <typename T>
float SumOfExponentials(const T* x, int64_t n, float largest) {
  return SumOver(n, [&](int64_t i, auto part) {
    return Keep(Exp(Load(x + i, part) - largest), F32{}, part);
  });
}

// Whether x[target] is the first of the largest.
template <typename T>
bool IsFirstLargest(const T* x, int64_t target, float largest) {
  bool first = At(x, target) == largest;
  for (int64_t i = 0; first && i < target; ++i) first = At(x, i) < largest;
  return first;
}

template <typename T>
void Gradient(void* logits, int64_t n, int64_t target, float largest, float sum,
              float chosen, float factor) {
  T* x = static_cast<T*>(logits);
  const float scale = factor / sum;
  ForEach(n, [&](int64_t i, auto part) {
    Store(x + i, Exp(Load(x + i, part) - largest) * scale, part);
  });
  if (target < 0) return;
  // Of the target: softmax - 1, from the loss rather than by difference where
  // that would cancel.
  const float probability = Exp(Splat(chosen - largest))[0] / sum;
  Store(x + target, Splat((probability - 1.0f) * factor), Part{1});
}

// A NaN among the logits is no largest logit, but makes the sum, and so loss
// and gradient, NaN.
template <typename T>
float Row(void* logits, int64_t n, int64_t target, bool in_place, float factor,
          int32_t* correct) {
  const T* x = static_cast<const T*>(logits);
  const float largest = LargestOf(x, n);
  const float chosen = At(x, target);
  if (correct != nullptr) *correct = IsFirstLargest(x, target, largest) ? 1 : 0;
  const float sum = SumOfExponentials(x, n, largest);
  const float loss =
      static_cast<float>(Log(sum) + (static_cast<double>(largest) - chosen));
  if (in_place) {
    Gradient<T>(logits, n, target, largest, sum, chosen, factor);
  }
  return sum == sum ? loss : sum;
}

template <typename T>
void Statistics(const void* logits, int64_t n, int64_t target,
                float* statistics) {
  const T* x = static_cast<const T*>(logits);
  const float largest = LargestOf(x, n);
  statistics[0] = largest;
  statistics[1] = SumOfExponentials(x, n, largest);
  statistics[2] = target < 0 ? -__builtin_inff() : At(x, target);
  statistics[3] =
      target >= 0 && IsFirstLargest(x, target, largest) ? 1.0f : 0.0f;
}

float Exponential(float x) { return Exp(Splat(x))[0]; }

}  // namespace

const CrossEntropyKernels kCrossEntropyKernels = {
    .row = {Row<float>, Row<Bf16>},
    .statistics = {Statistics<float>, Statistics<Bf16>},
    .gradient = {Gradient<float>, Gradient<Bf16>},
    .exponential = Exponential,
};

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL
