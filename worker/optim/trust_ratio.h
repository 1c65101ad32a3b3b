// Trust ratios of LARS and LAMB: norms of whole logical tensors.
#ifndef LOCKSTEP_WORKER_OPTIM_TRUST_RATIO_H_
#define LOCKSTEP_WORKER_OPTIM_TRUST_RATIO_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/stream.h"
#include "worker/optim/update_range.h"

namespace lockstep {

// Takes a value of each of the store's tensors, and replaces it by its sum over
// the ranks that hold the parts of one replica; null where there is one rank.
using ShardSum = std::function<absl::Status(absl::Span<double>)>;

// Norm of each logical tensor's master values, and of its gradient, of which
// this rank's shards hold `ranges`. Waits for the stream, and for other ranks.
absl::StatusOr<std::vector<double>> MasterNorms(
    Stream& stream, const ParameterStore& store,
    const std::vector<UpdateRange>& ranges, const ShardSum& sum);
absl::StatusOr<std::vector<double>> GradientNorms(
    Stream& stream, const ParameterStore& store,
    const std::vector<UpdateRange>& ranges, const ShardSum& sum);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_OPTIM_TRUST_RATIO_H_
