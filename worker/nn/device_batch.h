// DeviceBatch: a micro-batch's index tensors in device memory.
#ifndef LOCKSTEP_WORKER_NN_DEVICE_BATCH_H_
#define LOCKSTEP_WORKER_NN_DEVICE_BATCH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/ops/dropout.h"
#include "kernels/owned_tensor.h"
#include "kernels/stream.h"
#include "worker/data/micro_batch.h"

namespace lockstep {

struct DeviceBatch {
  int64_t rows = 0;     // N tokens
  int64_t samples = 0;  // S
  int64_t max_segment_rows = 0;
  Tensor tokens;          // (N,) int32
  Tensor positions;       // (N,) int32
  RowOrigin origin;       // (N,), (N,)
  Tensor targets;         // (N,) or (S,) int32
  Tensor segment_bounds;  // (segments + 1,) int32
  Tensor sample_bounds;   // (S + 1,) int32
  OwnedTensor storage;    // all of them
};

// Copies `batch` to the stream's device (category buffer).
absl::StatusOr<DeviceBatch> StageBatch(Stream& stream, const MicroBatch& batch);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_DEVICE_BATCH_H_
