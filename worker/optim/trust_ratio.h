// Trust ratios of LARS and LAMB: norms of whole logical tensors.
#ifndef LOCKSTEP_WORKER_OPTIM_TRUST_RATIO_H_
#define LOCKSTEP_WORKER_OPTIM_TRUST_RATIO_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"
#include "worker/optim/update_range.h"

namespace lockstep {

// Norm of each range of a flat fp32 arena. Waits for the stream.
absl::StatusOr<std::vector<double>> RangeNorms(
    Stream& stream, const std::vector<UpdateRange>& ranges,
    const Tensor& arena);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_OPTIM_TRUST_RATIO_H_
