// Ddp: plain data parallelism. Every rank holds the whole model; gradients are
// summed over the group bucket by bucket while backward goes on (Li et al.,
// arXiv:2006.15704). The loss is scaled by the global batch's targets where it
// is made, so a sum is all that is left to do.
//
//   ddp.BeginMicroBatch(Ddp::Turn::kLast);
//   model.ForwardBackward(context, sums, ddp);
//   RETURN_IF_ERROR(ddp.Finish());  // gradients are the global batch's
//
// Threads: one at a time. Group and store must outlive it.
#ifndef LOCKSTEP_WORKER_PARALLEL_DATA_DDP_H_
#define LOCKSTEP_WORKER_PARALLEL_DATA_DDP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "worker/dist/process_group.h"
#include "worker/nn/parameter_store.h"
#include "worker/nn/transformer_model.h"
#include "worker/parallel/data/gradient_bucket.h"

namespace lockstep {

class Ddp : public UnitObserver {
 public:
  Ddp(ProcessGroup& group, const ParameterStore& store, int64_t bucket_bytes);

  // Gradients are complete, and reduced, in a step's last micro-batch only.
  enum class Turn : uint8_t { kAccumulate, kLast };
  void BeginMicroBatch(Turn turn);
  absl::Status AfterBackward(int unit) override;
  // Waits for the reductions. On a rank without micro-batches in this step it
  // also launches them, so that all ranks take part.
  absl::Status Finish();

 private:
  // Launches all buckets that backward has completed on its way to `unit`.
  void FlushDownTo(int unit);

  ProcessGroup& group_;
  const ParameterStore& store_;
  const std::vector<GradientBucket> buckets_;
  Turn turn_ = Turn::kAccumulate;
  size_t next_bucket_ = 0;
  std::vector<std::unique_ptr<Work>> pending_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_PARALLEL_DATA_DDP_H_
