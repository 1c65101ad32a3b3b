// Element-wise ops. Matrices may have padded rows; accumulation is fp32.
#ifndef LOCKSTEP_KERNELS_OPS_ELEMENTWISE_H_
#define LOCKSTEP_KERNELS_OPS_ELEMENTWISE_H_

#include "absl/status/status.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace lockstep::ops {

// Every element = 0. Dense or padded; padding is left alone.
absl::Status Zero(Stream& stream, const Tensor& out);
// Every element = value (fp32, bf16).
absl::Status Fill(Stream& stream, float value, const Tensor& out);
// out = x, converted to out's dtype (fp32 <-> bf16, round to nearest even).
absl::Status Convert(Stream& stream, const Tensor& x, const Tensor& out);
// out = a + b; `out` may be either operand. One dtype.
absl::Status Add(Stream& stream, const Tensor& a, const Tensor& b,
                 const Tensor& out);
// x *= factor (fp32).
absl::Status Scale(Stream& stream, float factor, const Tensor& x);

// GELU, tanh form (Hendrycks and Gimpel, arXiv:1606.08415, section 2).
//   x, out: (N, F)
absl::Status GeluForward(Stream& stream, const Tensor& x, const Tensor& out);
// dx = dout * gelu'(x); `dx` may be the memory of `dout`.
absl::Status GeluBackward(Stream& stream, const Tensor& dout, const Tensor& x,
                          const Tensor& dx);

// SwiGLU (Shazeer, arXiv:2002.05202, eq. 6): out = silu(gate) * up.
//   gate_up: (N, 2F), gate in columns [0, F), up in [F, 2F)   out: (N, F)
absl::Status SwigluForward(Stream& stream, const Tensor& gate_up,
                           const Tensor& out);
// dgate_up may be the memory of gate_up.
absl::Status SwigluBackward(Stream& stream, const Tensor& dout,
                            const Tensor& gate_up, const Tensor& dgate_up);

// Rotary position embedding, half-split form as in Llama (Su et al.,
// arXiv:2104.09864, eq. 34), in place: pair (i, i + D/2) of each head turns by
// position * theta^(-2i/D). kBackward turns the other way.
//   x: (N, heads * D), a view of the heads to turn   position: (N,) int32
enum class RotaryDirection { kForward, kBackward };
absl::Status Rotary(Stream& stream, const Tensor& x, int64_t head_width,
                    double theta, const Tensor& position,
                    RotaryDirection direction);

}  // namespace lockstep::ops

#endif  // LOCKSTEP_KERNELS_OPS_ELEMENTWISE_H_
