// Zero: sharded data parallelism in its three stages (Rajbhandari et al.,
// arXiv:1910.02054, section 5; stage 3 is FSDP: Zhao et al., arXiv:2304.11277).
// The ranks of `shards` hold a part each of one replica's optimizer states
// (stage 1), gradients too (2), parameters too (3); `replicas` hold the same
// parts and sum their gradients (hybrid sharding).
//
// Stage 1: gradients add up whole; in the last micro-batch each unit's are
// reduce-scattered as backward leaves it.
// Stages 2 and 3: a unit's whole gradients exist from before its backward until
// they are reduce-scattered, in each micro-batch, while the next unit's
// backward runs: two units' at most. Stage 3: a unit's parameters are gathered
// while its predecessor computes and freed when it is done, forward and
// backward alike: two units' at most, and the token embedding's beside the head
// where they are tied. Stages 1 and 2: parameters are gathered after each
// update; the next forward waits for them unit by unit.
//
// Every rank reduces and gathers the same segments in the same order. Whoever
// reduces an element adds the ranks' parts in rank order.
#ifndef LOCKSTEP_WORKER_PARALLEL_DATA_ZERO_H_
#define LOCKSTEP_WORKER_PARALLEL_DATA_ZERO_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "kernels/owned_tensor.h"
#include "kernels/stream.h"
#include "worker/dist/process_group.h"
#include "worker/nn/parameter_store.h"
#include "worker/parallel/data/data_parallel.h"

namespace lockstep {

class Zero : public DataParallel {
 public:
  Zero(ProcessGroup& shards, ProcessGroup& replicas, Stream& stream,
       ParameterStore& store, const ModelVisits& visits);
  // Collectives under way must be over or aborted.
  ~Zero() override;

  void BeginMicroBatch(Turn turn) override;
  absl::Status BeforeUnit(int unit, Pass pass) override;
  absl::Status AfterUnit(int unit, Pass pass) override;
  absl::Status FinishGradients() override;
  absl::Status PublishParameters() override;

 private:
  // A segment being gathered, or there.
  struct Gathered {
    OwnedTensor memory;
    std::unique_ptr<Work> work;
  };
  // A segment's gradients on their way to their shards.
  struct Reduction {
    int segment = 0;
    // Empty in stage 1.
    OwnedTensor whole;
    // What is to be added to the shard; empty where it was written at once.
    OwnedTensor part;
    std::unique_ptr<Work> work;
    // Nothing more comes to this segment in this step.
    bool last = false;
  };

  // Segments that a visit uses, in storage order.
  const std::vector<int>& Uses(int unit) const { return uses_[unit]; }
  // Whether a visit adds to the gradients of a segment.
  bool MakesGradient(int segment, Pass pass) const;
  // The unit visited after this one in the same micro-batch, or -1.
  int Next(int unit, Pass pass) const;
  absl::Status Gather(int segment);
  absl::Status AwaitParameters(int segment);
  void Free(int segment);
  absl::Status PrepareGradients(int segment);
  absl::Status Reduce(int segment, bool last);
  // Ends all reductions under way.
  absl::Status Drain();
  bool CompleteAfter(int segment, int unit) const;

  ProcessGroup& shards_;
  ProcessGroup& replicas_;
  Stream& stream_;
  ParameterStore& store_;
  const int stage_;
  const ModelVisits visits_;
  std::vector<std::vector<int>> uses_;
  std::vector<Gathered> gathered_;
  // Whole gradients of stages 2 and 3.
  std::vector<OwnedTensor> gradients_;
  std::vector<Reduction> reductions_;
  // Sums over replicas.
  std::vector<std::unique_ptr<Work>> sums_;
  // Whether the segment's shard has this step's gradients already.
  std::vector<bool> begun_;
  Turn turn_ = Turn::kAccumulate;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_PARALLEL_DATA_ZERO_H_
