#include <stdint.h>

#include "kernels/cpu/level/exp.h"
#include "kernels/cpu/level/kernels.h"
#include "kernels/cpu/level/simd.h"

namespace lockstep::cpu::LOCKSTEP_LEVEL {
namespace {

template <typename T>
void FillRow(float value, void* out, int64_t n) {
  T* o = static_cast<T*>(out);
  ForEach(n, [&](int64_t i, auto part) { Store(o + i, Splat(value), part); });
}

void ToBf16(const float* x, Bf16* out, int64_t n) {
  ForEach(n, [&](int64_t i, auto part) {
    Store(out + i, Load(x + i, part), part);
  });
}

void ToFp32(const Bf16* x, float* out, int64_t n) {
  ForEach(n, [&](int64_t i, auto part) {
    Store(out + i, Load(x + i, part), part);
  });
}

template <typename T>
void Add(const void* a, const void* b, void* out, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* o = static_cast<T*>(out);
  ForEach(n, [&](int64_t i, auto part) {
    Store(o + i, Load(x + i, part) + Load(y + i, part), part);
  });
}

void Scale(float factor, float* x, int64_t n) {
  ForEach(n, [&](int64_t i, auto part) {
    Store(x + i, Load(x + i, part) * factor, part);
  });
}

// gelu(x) = x / (1 + e^-2u) with u = sqrt(2/pi) (x + 0.044715 x^3): the tanh
// form, without tanh's cancellation for negative x.
constexpr float kTwoRootTwoOverPi = 1.5957691216057308f;
constexpr float kCubic = 0.044715f;

template <typename T>
void GeluForward(const void* x, void* out, int64_t n) {
  const T* in = static_cast<const T*>(x);
  T* o = static_cast<T*>(out);
  ForEach(n, [&](int64_t i, auto part) {
    const F32 v = Load(in + i, part);
    const F32 inner = Fma(v * v * kCubic, v, v) * -kTwoRootTwoOverPi;
    Store(o + i, v / (Exp(inner) + 1.0f), part);
  });
}

template <typename T>
void GeluBackward(const void* dout, const void* x, void* dx, int64_t n) {
  const T* grad = static_cast<const T*>(dout);
  const T* in = static_cast<const T*>(x);
  T* o = static_cast<T*>(dx);
  ForEach(n, [&](int64_t i, auto part) {
    const F32 v = Load(in + i, part);
    const F32 square = v * v;
    const F32 e = Exp(Fma(square * kCubic, v, v) * -kTwoRootTwoOverPi);
    const F32 sigmoid = 1.0f / (e + 1.0f);
    const F32 slope =
        Fma(square, Splat(3 * kCubic), Splat(1.0f)) * kTwoRootTwoOverPi;
    // sigmoid + x sigmoid (1 - sigmoid) slope, with 1 - sigmoid = e sigmoid.
    const F32 factor = Fma(v * (e * sigmoid), slope, Splat(1.0f)) * sigmoid;
    Store(o + i, Load(grad + i, part) * factor, part);
  });
}

template <typename T>
void SwigluForward(const void* gate, const void* up, void* out, int64_t n) {
  const T* g = static_cast<const T*>(gate);
  const T* u = static_cast<const T*>(up);
  T* o = static_cast<T*>(out);
  ForEach(n, [&](int64_t i, auto part) {
    const F32 v = Load(g + i, part);
    Store(o + i, v / (Exp(-v) + 1.0f) * Load(u + i, part), part);
  });
}

template <typename T>
void SwigluBackward(const void* dout, const void* gate, const void* up,
                    void* dgate, void* dup, int64_t n) {
  const T* grad = static_cast<const T*>(dout);
  const T* g = static_cast<const T*>(gate);
  const T* u = static_cast<const T*>(up);
  T* dg = static_cast<T*>(dgate);
  T* du = static_cast<T*>(dup);
  ForEach(n, [&](int64_t i, auto part) {
    const F32 d = Load(grad + i, part);
    const F32 v = Load(g + i, part);
    const F32 w = Load(u + i, part);
    const F32 e = Exp(-v);
    const F32 sigmoid = 1.0f / (e + 1.0f);
    // silu' = sigmoid (1 + x (1 - sigmoid)), with 1 - sigmoid = e sigmoid.
    const F32 slope = Fma(v, e * sigmoid, Splat(1.0f)) * sigmoid;
    Store(dg + i, d * w * slope, part);
    Store(du + i, d * (v * sigmoid), part);
  });
}

// In double: positions reach 10^5 radians, of which single precision would
// leave four digits. Written so that compilers vectorise the loop.
void RotaryAngles(double position, const double* frequency, float direction,
                  float* cosines, float* sines, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double angle = position * frequency[i];
    // angle = quarter pi/2 + r, |r| <= pi/4; 1.5 * 2^52 rounds to an integer.
    const double shifted = angle * 0.63661977236758134308 + 6755399441055744.0;
    const double quarter = shifted - 6755399441055744.0;
    double r = angle - quarter * 1.57079632673412561417;
    r = r - quarter * 6.07710050650619224932e-11;
    const double z = r * r;
    // Taylor series to r^13 and r^12: |error| < 1e-12.
    double s = 1.0 / 6227020800.0;
    s = s * z - 1.0 / 39916800.0;
    s = s * z + 1.0 / 362880.0;
    s = s * z - 1.0 / 5040.0;
    s = s * z + 1.0 / 120.0;
    s = s * z - 1.0 / 6.0;
    s = s * z * r + r;
    double c = 1.0 / 479001600.0;
    c = c * z - 1.0 / 3628800.0;
    c = c * z + 1.0 / 40320.0;
    c = c * z - 1.0 / 720.0;
    c = c * z + 1.0 / 24.0;
    c = c * z - 0.5;
    c = c * z + 1.0;
    const int32_t turn = static_cast<int32_t>(
        quarter - 4.0 * static_cast<int32_t>(quarter * 0.25));
    const double swapped_s = (turn & 1) != 0 ? c : s;
    const double swapped_c = (turn & 1) != 0 ? s : c;
    const double sign_s = (turn & 2) != 0 ? -swapped_s : swapped_s;
    const double sign_c = ((turn + 1) & 2) != 0 ? -swapped_c : swapped_c;
    cosines[i] = static_cast<float>(sign_c);
    sines[i] = static_cast<float>(sign_s) * direction;
  }
}

template <typename T>
void RotaryRow(void* x, int64_t heads, int64_t half, const float* cosines,
               const float* sines) {
  for (int64_t head = 0; head < heads; ++head) {
    T* low = static_cast<T*>(x) + head * 2 * half;
    T* high = low + half;
    ForEach(half, [&](int64_t i, auto part) {
      const F32 a = Load(low + i, part);
      const F32 b = Load(high + i, part);
      const F32 c = Load(cosines + i, part);
      const F32 s = Load(sines + i, part);
      Store(low + i, Fma(a, c, -(b * s)), part);
      Store(high + i, Fma(b, c, a * s), part);
    });
  }
}

template <typename T>
void Blend(float a, const void* x, float b, const void* y, void* out,
           int64_t n) {
  const T* first = static_cast<const T*>(x);
  const T* second = static_cast<const T*>(y);
  T* o = static_cast<T*>(out);
  ForEach(n, [&](int64_t i, auto part) {
    Store(o + i, Load(first + i, part) * a + Load(second + i, part) * b, part);
  });
}

}  // namespace

const ElementwiseKernels kElementwiseKernels = {
    .fill = {FillRow<float>, FillRow<Bf16>},
    .to_bf16 = ToBf16,
    .to_fp32 = ToFp32,
    .add = {Add<float>, Add<Bf16>},
    .scale = Scale,
    .blend = {Blend<float>, Blend<Bf16>},
    .gelu_forward = {GeluForward<float>, GeluForward<Bf16>},
    .gelu_backward = {GeluBackward<float>, GeluBackward<Bf16>},
    .swiglu_forward = {SwigluForward<float>, SwigluForward<Bf16>},
    .swiglu_backward = {SwigluBackward<float>, SwigluBackward<Bf16>},
    .rotary_angles = RotaryAngles,
    .rotary_row = {RotaryRow<float>, RotaryRow<Bf16>},
};

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL
