// The algorithms of the collectives, over the messages of a GlooLink, or where
// all ranks are on one host through memory that they share
// (docs/collectives.md). Every rank talks to every other directly; whoever
// reduces an element adds the ranks' contributions in rank order. So the result
// has the same bits on all ranks, in every run, and whichever way a tensor is
// cut into buckets.
//
// All functions block until the collective is done on this rank or the link has
// failed; arguments were checked. Scratch is counted (MemoryCategory::kBuffer).
#ifndef LOCKSTEP_WORKER_DIST_DIRECT_COLLECTIVES_H_
#define LOCKSTEP_WORKER_DIST_DIRECT_COLLECTIVES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/allocator.h"
#include "kernels/tensor.h"
#include "worker/dist/gloo_link.h"
#include "worker/dist/process_group.h"
#include "worker/dist/shared_memory_channel.h"

namespace lockstep {

// One collective about to run.
struct CollectiveRun {
  GlooLink& link;
  // Where all ranks are on one host; else null.
  SharedMemoryChannel* shared = nullptr;
  Allocator& allocator;
  absl::Time deadline;
  // First slot of its messages; it may use those that follow.
  uint64_t slot = 0;
};

absl::Status RunAllReduce(const CollectiveRun& run, const Tensor& tensor,
                          ReduceOp op);
absl::Status RunReduce(const CollectiveRun& run, const Tensor& tensor,
                       ReduceOp op, int root);
absl::Status RunReduceScatter(const CollectiveRun& run, const Tensor& input,
                              const Tensor& output, ReduceOp op);
absl::Status RunAllGather(const CollectiveRun& run, const Tensor& input,
                          const Tensor& output);
absl::Status RunAllToAll(const CollectiveRun& run,
                         absl::Span<const Tensor> input,
                         absl::Span<const Tensor> output);
absl::Status RunBroadcast(const CollectiveRun& run, const Tensor& tensor,
                          int root);
// slots[i] belongs to transfers[i] and is the same on its other side.
absl::Status RunExchange(const CollectiveRun& run,
                         absl::Span<const PeerTransfer> transfers,
                         absl::Span<const uint64_t> slots);
absl::Status RunBarrier(const CollectiveRun& run);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_DIRECT_COLLECTIVES_H_
