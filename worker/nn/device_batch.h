// DeviceBatch: a micro-batch's index tensors in device memory.
#ifndef LOCKSTEP_WORKER_NN_DEVICE_BATCH_H_
#define LOCKSTEP_WORKER_NN_DEVICE_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/ops/dropout.h"
#include "kernels/owned_tensor.h"
#include "kernels/stream.h"
#include "worker/data/micro_batch.h"
#include "worker/nn/tensor_regions.h"

namespace lockstep {

// Which rows of a packed micro-batch a rank of context parallelism has: they
// are cut into `chunks` equal chunks, of which it has `own`, one after another.
struct ContextCut {
  int64_t chunks = 1;
  std::vector<int64_t> own = {0};
};

// A rank's rows of a micro-batch, and its rows of the residual stream of them.
struct BatchPlace {
  ContextCut context;
  RowPart residual;

  // Multiple of rows that a batch must have.
  int64_t multiple() const { return context.chunks * residual.parts; }
  // Of a micro-batch of `rows` rows, how many a rank has, and how many of the
  // residual stream.
  int64_t Rows(int64_t rows) const;
  int64_t ResidualRows(int64_t rows) const {
    return Rows(rows) / residual.parts;
  }
};

// What a chunk has of each segment.
struct ChunkSegments {
  Tensor bounds;   // (segments + 1,) int32, rows within the chunk
  Tensor offsets;  // (segments,) int32, of its first row within the segment
  int64_t max_rows = 0;
};

struct DeviceBatch {
  int64_t rows = 0;  // N tokens of this rank, those that were added included
  int64_t last_row = 0;  // of those that were not added
  int64_t samples = 0;   // S
  Tensor tokens;         // (N,) int32
  Tensor positions;      // (N,) int32
  RowOrigin origin;      // (N,), (N,)
  // Of this rank's rows of the residual stream.
  RowOrigin residual_origin;
  Tensor targets;  // (N,), or (S,) and more, int32
  // Of all ranks' rows together: the same as the above where one has all.
  int64_t whole_rows = 0;
  RowOrigin whole_origin;
  int64_t max_segment_rows = 0;
  Tensor segment_bounds;  // (segments + 1,) int32
  Tensor sample_bounds;   // (S + 1,) int32
  // By chunk, this rank's and the others'; none where there is one chunk.
  std::vector<ChunkSegments> chunks;
  OwnedTensor storage;  // all of them
};

// Copies this rank's part of `batch` to the stream's device (category buffer).
// Rows are added, as a segment of their own and without targets, until
// place.multiple() divides them: they add nothing to any loss or gradient.
absl::StatusOr<DeviceBatch> StageBatch(Stream& stream, const MicroBatch& batch,
                                       const BatchPlace& place);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_DEVICE_BATCH_H_
