// DeviceBatch: a micro-batch's index tensors in device memory.
#ifndef LOCKSTEP_WORKER_NN_DEVICE_BATCH_H_
#define LOCKSTEP_WORKER_NN_DEVICE_BATCH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/ops/dropout.h"
#include "kernels/owned_tensor.h"
#include "kernels/stream.h"
#include "worker/data/micro_batch.h"
#include "worker/nn/tensor_regions.h"

namespace lockstep {

struct DeviceBatch {
  int64_t rows = 0;      // N tokens, those that were added included
  int64_t last_row = 0;  // of those that were not added
  int64_t samples = 0;   // S
  int64_t max_segment_rows = 0;
  Tensor tokens;     // (N,) int32
  Tensor positions;  // (N,) int32
  RowOrigin origin;  // (N,), (N,)
  // Of this rank's rows of the residual stream.
  RowOrigin residual_origin;
  Tensor targets;         // (N,), or (S,) and more, int32
  Tensor segment_bounds;  // (segments + 1,) int32
  Tensor sample_bounds;   // (S + 1,) int32
  OwnedTensor storage;    // all of them
};

// Copies `batch` to the stream's device (category buffer). Rows are added, as a
// segment of their own and without targets, until `part.parts` divides them:
// they add nothing to any loss or gradient.
absl::StatusOr<DeviceBatch> StageBatch(Stream& stream, const MicroBatch& batch,
                                       const RowPart& part);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_DEVICE_BATCH_H_
