// ProcessGroup: collectives among the ranks of one mesh axis (or of the world).
//
// Every member calls the same collectives in the same order, with the same
// element counts, dtypes and ops; collectives of different groups are launched
// in one order on all ranks. Each call returns at once with a Work; the tensors
// must stay alive and untouched until its Wait() returns. All tensors are
// dense. Reductions run in one fixed order and give equal bits on all ranks.
// fp32 and bf16 (summed in fp32, rounded once a hop); int32 for broadcast and
// gathers.
//
// Threads: one thread issues; Abort may be called from any thread.
// Errors: INVALID_ARGUMENT (counts that don't fit, seen locally), UNAVAILABLE
// (a peer is gone), ABORTED (after Abort), DEADLINE_EXCEEDED.
#ifndef LOCKSTEP_WORKER_DIST_PROCESS_GROUP_H_
#define LOCKSTEP_WORKER_DIST_PROCESS_GROUP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/tensor.h"
#include "worker/dist/work.h"

namespace lockstep {

enum class ReduceOp : uint8_t { kSum, kMax };

// One send or receive of a group of them.
struct PeerTransfer {
  enum class Direction : uint8_t { kSend, kReceive };
  Direction direction = Direction::kSend;
  int peer = 0;
  Tensor tensor;
};

class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  // "world", "dp", ...: for messages.
  virtual const std::string& name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // In place: every rank gets the reduction.
  virtual std::unique_ptr<Work> AllReduce(const Tensor& tensor,
                                          ReduceOp op) = 0;
  // In place on `root`; other ranks' tensors are left as they were.
  virtual std::unique_ptr<Work> Reduce(const Tensor& tensor, ReduceOp op,
                                       int root) = 0;
  // input: size() x output elements; rank i gets the i-th part, reduced.
  // `output` may be that part of `input`.
  virtual std::unique_ptr<Work> ReduceScatter(const Tensor& input,
                                              const Tensor& output,
                                              ReduceOp op) = 0;
  // output: size() x input elements. `input` may be this rank's part of it.
  virtual std::unique_ptr<Work> AllGather(const Tensor& input,
                                          const Tensor& output) = 0;
  // Sends input[i] to rank i and receives output[i] from it. Counts may differ
  // from pair to pair and be 0.
  virtual std::unique_ptr<Work> AllToAll(absl::Span<const Tensor> input,
                                         absl::Span<const Tensor> output) = 0;
  virtual std::unique_ptr<Work> Broadcast(const Tensor& tensor, int root) = 0;
  // All transfers progress together: their order can't cause a deadlock.
  virtual std::unique_ptr<Work> Exchange(
      absl::Span<const PeerTransfer> transfers) = 0;
  virtual std::unique_ptr<Work> Barrier() = 0;

  // Ends all collectives under way, and all later ones, with ABORTED.
  virtual void Abort() = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_PROCESS_GROUP_H_
