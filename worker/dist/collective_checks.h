// What every process group checks, whatever its backend, before a collective
// starts: element counts, dtypes, devices, roots, peers and overlap.
// Errors: INVALID_ARGUMENT with what it got and wanted.
#ifndef LOCKSTEP_WORKER_DIST_COLLECTIVE_CHECKS_H_
#define LOCKSTEP_WORKER_DIST_COLLECTIVE_CHECKS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/tensor.h"
#include "worker/dist/process_group.h"

namespace lockstep {

// `group` is asked for its rank and size only.
absl::Status CheckAllReduce(const Tensor& tensor);
absl::Status CheckReduce(const ProcessGroup& group, const Tensor& tensor,
                         int root);
absl::Status CheckReduceScatter(const ProcessGroup& group, const Tensor& input,
                                const Tensor& output);
absl::Status CheckAllGather(const ProcessGroup& group, const Tensor& input,
                            const Tensor& output);
absl::Status CheckAllToAll(const ProcessGroup& group,
                           absl::Span<const Tensor> input,
                           absl::Span<const Tensor> output);
absl::Status CheckBroadcast(const ProcessGroup& group, const Tensor& tensor,
                            int root);
// Transfers with the own rank must pair up, the n-th send with the n-th
// receive.
absl::Status CheckExchange(const ProcessGroup& group,
                           absl::Span<const PeerTransfer> transfers);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_COLLECTIVE_CHECKS_H_
