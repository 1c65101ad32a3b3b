// The collectives among ranks of one host, through memory that they share. Sums
// are taken in rank order, as over messages: the same bits. All functions
// block; arguments were checked, tensors are in host memory.
#ifndef LOCKSTEP_WORKER_DIST_SHARED_MEMORY_COLLECTIVES_H_
#define LOCKSTEP_WORKER_DIST_SHARED_MEMORY_COLLECTIVES_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/tensor.h"
#include "worker/dist/process_group.h"
#include "worker/dist/shared_memory_channel.h"

namespace lockstep {

struct SharedRun {
  SharedMemoryChannel& channel;
  absl::Time deadline;
};

// With a root only its tensor changes.
absl::Status SharedReduce(const SharedRun& run, const Tensor& tensor,
                          ReduceOp op, std::optional<int> root);
absl::Status SharedReduceScatter(const SharedRun& run, const Tensor& input,
                                 const Tensor& output, ReduceOp op);
absl::Status SharedAllGather(const SharedRun& run, const Tensor& input,
                             const Tensor& output);
absl::Status SharedBroadcast(const SharedRun& run, const Tensor& tensor,
                             int root);
absl::Status SharedBarrier(const SharedRun& run);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_SHARED_MEMORY_COLLECTIVES_H_
