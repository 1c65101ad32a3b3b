// ArgumentCheck: what is wrong with an op's arguments, found before the backend
// sees them. The first finding wins.
//
//   ArgumentCheck check("gelu forward", stream);
//   check.Float("x", x);
//   check.Matrix("out", out, x.rows(), x.cols(), x.dtype());
//   RETURN_IF_ERROR(check.status());
#ifndef LOCKSTEP_KERNELS_OPS_CHECK_H_
#define LOCKSTEP_KERNELS_OPS_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/ops/dropout.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace lockstep::ops {

class ArgumentCheck {
 public:
  ArgumentCheck(const char* op, const Stream& stream)
      : op_(op), device_(stream.device()) {}

  // Memory of the stream's device, of type fp32 or bf16.
  void Float(const char* name, const Tensor& tensor);
  // A (rows, cols) matrix of `dtype`; rows may be several dims.
  void Matrix(const char* name, const Tensor& tensor, int64_t rows,
              int64_t cols, DType dtype);
  // `count` contiguous elements of `dtype`.
  void Vector(const char* name, const Tensor& tensor, int64_t count,
              DType dtype);
  // A probability in [0, 1) and, unless it is 0, origins of `rows` rows.
  void Dropout(const lockstep::Dropout& dropout, int64_t rows);
  void NotNull(const char* name, const void* pointer);
  // Any other condition; `wanted` completes "op: ...".
  void That(bool holds, absl::string_view wanted);

  const absl::Status& status() const { return status_; }

 private:
  bool Memory(const char* name, const Tensor& tensor);
  void Type(const char* name, const Tensor& tensor, DType dtype);
  void Fail(absl::string_view message);

  const char* const op_;
  const DeviceKind device_;
  absl::Status status_;
};

}  // namespace lockstep::ops

#endif  // LOCKSTEP_KERNELS_OPS_CHECK_H_
