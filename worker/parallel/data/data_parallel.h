// DataParallel: how ranks that see different samples end with the gradients of
// the whole global batch, and share what they keep. The loss is scaled by the
// global batch's targets where it is made, so sums are all that is left to do.
//
//   data_parallel.BeginMicroBatch(DataParallel::Turn::kLast);
//   ... model.Forward and Backward, watched by data_parallel ...
//   RETURN_IF_ERROR(data_parallel.FinishGradients());
//   ... the optimizer updates this rank's shards ...
//   RETURN_IF_ERROR(data_parallel.PublishParameters());
//
// All ranks make the same visits: one without data for a micro-batch calls the
// model's Visit functions.
//
// Threads: one at a time. Groups, store and stream must outlive it.
#ifndef LOCKSTEP_WORKER_PARALLEL_DATA_DATA_PARALLEL_H_
#define LOCKSTEP_WORKER_PARALLEL_DATA_DATA_PARALLEL_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "kernels/stream.h"
#include "worker/dist/process_group.h"
#include "worker/nn/parameter_store.h"
#include "worker/nn/unit_observer.h"

namespace lockstep {

class DataParallel : public UnitObserver {
 public:
  // A step's gradients are complete after its last micro-batch.
  enum class Turn : uint8_t { kAccumulate, kLast };
  virtual void BeginMicroBatch(Turn turn) = 0;
  // Waits until the gradients of this rank's shards are the global batch's.
  virtual absl::Status FinishGradients() = 0;
  // Hands this rank's shards of the parameters to those who compute with them,
  // after each change.
  virtual absl::Status PublishParameters() = 0;
};

// What data parallelism can't tell from the parameters.
struct ModelVisits {
  // The head multiplies by the token embedding, which is unit 0's.
  bool tied_embeddings = false;
  // The head's visit follows the last block's forward one.
  bool head_follows_forward = true;
};

// The kind that `store` was made for. `shards`: the ranks that share one
// replica's states; `replicas`: those that hold the same shards.
std::unique_ptr<DataParallel> MakeDataParallel(ProcessGroup& shards,
                                               ProcessGroup& replicas,
                                               Stream& stream,
                                               ParameterStore& store,
                                               const ModelVisits& visits);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_PARALLEL_DATA_DATA_PARALLEL_H_
