#include "kernels/ops/elementwise.h"

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "kernels/backend.h"
#include "kernels/ops/check.h"

namespace lockstep::ops {

absl::Status Zero(Stream& stream, const Tensor& out) {
  ArgumentCheck check("zero", stream);
  check.Matrix("out", out, out.rows(), out.cols(), out.dtype());
  RETURN_IF_ERROR(check.status());
  return stream.backend().zero(stream, out);
}

absl::Status Fill(Stream& stream, float value, const Tensor& out) {
  ArgumentCheck check("fill", stream);
  check.Float("out", out);
  RETURN_IF_ERROR(check.status());
  return stream.backend().fill(stream, value, out);
}

absl::Status Convert(Stream& stream, const Tensor& x, const Tensor& out) {
  ArgumentCheck check("convert", stream);
  check.Float("x", x);
  check.Float("out", out);
  check.Matrix("out", out, x.rows(), x.cols(), out.dtype());
  RETURN_IF_ERROR(check.status());
  return stream.backend().convert(stream, x, out);
}

absl::Status Add(Stream& stream, const Tensor& a, const Tensor& b,
                 const Tensor& out) {
  ArgumentCheck check("add", stream);
  check.Float("a", a);
  check.Matrix("b", b, a.rows(), a.cols(), a.dtype());
  check.Matrix("out", out, a.rows(), a.cols(), a.dtype());
  RETURN_IF_ERROR(check.status());
  return stream.backend().add(stream, a, b, out);
}

absl::Status Scale(Stream& stream, float factor, const Tensor& x) {
  ArgumentCheck check("scale", stream);
  check.Matrix("x", x, x.rows(), x.cols(), DType::kFloat32);
  RETURN_IF_ERROR(check.status());
  return stream.backend().scale(stream, factor, x);
}

absl::Status GeluForward(Stream& stream, const Tensor& x, const Tensor& out) {
  ArgumentCheck check("gelu forward", stream);
  check.Float("x", x);
  check.Matrix("out", out, x.rows(), x.cols(), x.dtype());
  RETURN_IF_ERROR(check.status());
  return stream.backend().gelu_forward(stream, x, out);
}

absl::Status GeluBackward(Stream& stream, const Tensor& dout, const Tensor& x,
                          const Tensor& dx) {
  ArgumentCheck check("gelu backward", stream);
  check.Float("x", x);
  check.Matrix("dout", dout, x.rows(), x.cols(), x.dtype());
  check.Matrix("dx", dx, x.rows(), x.cols(), x.dtype());
  RETURN_IF_ERROR(check.status());
  return stream.backend().gelu_backward(stream, dout, x, dx);
}

absl::Status SwigluForward(Stream& stream, const Tensor& gate_up,
                           const Tensor& out) {
  ArgumentCheck check("swiglu forward", stream);
  check.Float("gate_up", gate_up);
  check.That(gate_up.cols() % 2 == 0,
             absl::StrCat("gate_up has ", gate_up.cols(),
                          " columns, want an even number"));
  check.Matrix("out", out, gate_up.rows(), gate_up.cols() / 2, gate_up.dtype());
  RETURN_IF_ERROR(check.status());
  return stream.backend().swiglu_forward(stream, gate_up, out);
}

absl::Status SwigluBackward(Stream& stream, const Tensor& dout,
                            const Tensor& gate_up, const Tensor& dgate_up) {
  ArgumentCheck check("swiglu backward", stream);
  check.Float("dout", dout);
  check.Matrix("gate_up", gate_up, dout.rows(), 2 * dout.cols(), dout.dtype());
  check.Matrix("dgate_up", dgate_up, dout.rows(), 2 * dout.cols(),
               dout.dtype());
  RETURN_IF_ERROR(check.status());
  return stream.backend().swiglu_backward(stream, dout, gate_up, dgate_up);
}

absl::Status Rotary(Stream& stream, const Tensor& x, int64_t head_width,
                    double theta, const Tensor& position,
                    RotaryDirection direction) {
  ArgumentCheck check("rotary", stream);
  check.Float("x", x);
  check.That(head_width > 0 && head_width % 2 == 0,
             absl::StrCat("head width is ", head_width,
                          ", want it positive and even"));
  check.That(head_width <= 0 || x.cols() % head_width == 0,
             absl::StrCat("x has ", x.cols(), " columns, want whole heads of ",
                          head_width));
  check.That(theta > 0.0,
             absl::StrCat("theta is ", theta, ", want it positive"));
  check.Vector("position", position, x.rows(), DType::kInt32);
  RETURN_IF_ERROR(check.status());
  return stream.backend().rotary(stream, x, head_width, theta, position,
                                 direction);
}

}  // namespace lockstep::ops
