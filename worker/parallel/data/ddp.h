// Ddp: plain data parallelism. Every rank holds the whole model; gradients are
// summed over the group bucket by bucket while backward goes on (Li et al.,
// arXiv:2006.15704).
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
#include "worker/parallel/data/data_parallel.h"
#include "worker/parallel/data/gradient_bucket.h"

namespace lockstep {

class Ddp : public DataParallel {
 public:
  // `store` is not sharded.
  Ddp(ProcessGroup& group, const ParameterStore& store, int64_t bucket_bytes);

  void BeginMicroBatch(Turn turn) override;
  absl::Status BeforeUnit(int unit, Pass pass) override;
  absl::Status AfterUnit(int unit, Pass pass) override;
  absl::Status FinishGradients() override;
  absl::Status PublishParameters() override;

 private:
  // Launches all buckets whose units are complete.
  void Flush();
  // For the next step.
  void Reset();

  ProcessGroup& group_;
  const ParameterStore& store_;
  const std::vector<GradientBucket> buckets_;
  Turn turn_ = Turn::kAccumulate;
  size_t next_bucket_ = 0;
  // By unit: this step's gradients are.
  std::vector<bool> complete_;
  std::vector<std::unique_ptr<Work>> pending_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_PARALLEL_DATA_DDP_H_
