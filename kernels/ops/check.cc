#include "kernels/ops/check.h"

#include "absl/strings/str_cat.h"

namespace lockstep::ops {
namespace {

const char* Name(DeviceKind device) {
  return device == DeviceKind::kCpu ? "cpu" : "cuda";
}

}  // namespace

void ArgumentCheck::Fail(absl::string_view message) {
  if (status_.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat(op_, ": ", message));
  }
}

void ArgumentCheck::That(bool holds, absl::string_view wanted) {
  if (!holds) Fail(wanted);
}

void ArgumentCheck::NotNull(const char* name, const void* pointer) {
  if (pointer == nullptr) Fail(absl::StrCat(name, " is missing"));
}

bool ArgumentCheck::Memory(const char* name, const Tensor& tensor) {
  if (tensor.empty() && (tensor.shape().rank() == 0 || tensor.elements() > 0)) {
    Fail(absl::StrCat(name, " is missing"));
    return false;
  }
  if (tensor.device() != device_) {
    Fail(absl::StrCat(name, " is in ", Name(tensor.device()),
                      " memory, the stream is of ", Name(device_)));
    return false;
  }
  return true;
}

void ArgumentCheck::Type(const char* name, const Tensor& tensor, DType dtype) {
  if (tensor.dtype() != dtype) {
    Fail(absl::StrCat(name, " is ", lockstep::Name(tensor.dtype()), ", want ",
                      lockstep::Name(dtype)));
  }
}

void ArgumentCheck::Float(const char* name, const Tensor& tensor) {
  if (!Memory(name, tensor)) return;
  if (tensor.dtype() != DType::kFloat32 && tensor.dtype() != DType::kBFloat16) {
    Fail(absl::StrCat(name, " is ", lockstep::Name(tensor.dtype()),
                      ", want fp32 or bf16"));
  }
}

void ArgumentCheck::Matrix(const char* name, const Tensor& tensor, int64_t rows,
                           int64_t cols, DType dtype) {
  if (!Memory(name, tensor)) return;
  Type(name, tensor, dtype);
  if (tensor.rows() != rows || tensor.cols() != cols) {
    // A matrix without elements has no rows.
    if (cols == 0 && tensor.cols() == 0) return;
    Fail(absl::StrCat(name, " is ", tensor.shape().ToString(), ", want (", rows,
                      ", ", cols, ")"));
  }
}

void ArgumentCheck::Vector(const char* name, const Tensor& tensor,
                           int64_t count, DType dtype) {
  if (!Memory(name, tensor)) return;
  Type(name, tensor, dtype);
  if (tensor.elements() != count) {
    Fail(absl::StrCat(name, " is ", tensor.shape().ToString(), ", want (",
                      count, ")"));
  } else if (!tensor.dense()) {
    Fail(absl::StrCat(name, " has rows ", tensor.row_stride(),
                      " elements apart, want it dense"));
  }
}

void ArgumentCheck::Dropout(const lockstep::Dropout& dropout, int64_t rows) {
  if (!(dropout.probability >= 0.0f && dropout.probability < 1.0f)) {
    Fail(absl::StrCat("dropout probability is ", dropout.probability,
                      ", want it in [0, 1)"));
    return;
  }
  if (dropout.probability == 0.0f) return;
  NotNull("dropout's step scalars", dropout.scalars);
  Vector("dropout's sample", dropout.rows.sample, rows, DType::kUInt32);
  Vector("dropout's position", dropout.rows.position, rows, DType::kInt32);
}

}  // namespace lockstep::ops
