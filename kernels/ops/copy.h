// Copies between host and device memory, in the stream's order.
#ifndef LOCKSTEP_KERNELS_OPS_COPY_H_
#define LOCKSTEP_KERNELS_OPS_COPY_H_

#include "absl/status/status.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace lockstep::ops {

// Dense tensors, whole. `host` may be reused when the call returns.
absl::Status CopyFromHost(Stream& stream, const void* host, const Tensor& out);
// Returns when the bytes are in `host`.
absl::Status CopyToHost(Stream& stream, const Tensor& x, void* host);

}  // namespace lockstep::ops

#endif  // LOCKSTEP_KERNELS_OPS_COPY_H_
