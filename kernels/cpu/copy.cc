#include <cstring>

#include "kernels/cpu/cpu_ops.h"

namespace lockstep::cpu {

absl::Status CopyFromHost(Stream& stream, const void* host, const Tensor& out) {
  if (out.bytes() > 0) std::memcpy(out.raw(), host, out.bytes());
  return absl::OkStatus();
}

absl::Status CopyToHost(Stream& stream, const Tensor& x, void* host) {
  if (x.bytes() > 0) std::memcpy(host, x.raw(), x.bytes());
  return absl::OkStatus();
}

}  // namespace lockstep::cpu
