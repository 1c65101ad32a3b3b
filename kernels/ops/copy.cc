#include "kernels/ops/copy.h"

#include "absl/strings/str_cat.h"
#include "kernels/backend.h"

namespace lockstep::ops {
namespace {

absl::Status CheckDense(const char* op, const Tensor& tensor) {
  if (tensor.dense()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(op, ": tensor ", tensor.shape().ToString(), " has rows ",
                   tensor.row_stride(), " elements apart, want dense rows"));
}

}  // namespace

absl::Status CopyFromHost(Stream& stream, const void* host, const Tensor& out) {
  if (absl::Status status = CheckDense("copy_from_host", out); !status.ok()) {
    return status;
  }
  return stream.backend().copy_from_host(stream, host, out);
}

absl::Status CopyToHost(Stream& stream, const Tensor& x, void* host) {
  if (absl::Status status = CheckDense("copy_to_host", x); !status.ok()) {
    return status;
  }
  return stream.backend().copy_to_host(stream, x, host);
}

}  // namespace lockstep::ops
