// Memory that ops and collectives take while they run, and give back: counted
// beforehand, as an upper bound, from the same numbers that they go by.
#ifndef LOCKSTEP_COMMON_MODEL_WORKSPACE_H_
#define LOCKSTEP_COMMON_MODEL_WORKSPACE_H_

#include <cstdint>

#include "common/spec/model_spec.h"
#include "common/spec/training_spec.h"
#include "lockstep/v1/step_report.pb.h"

namespace lockstep {

// Reducing collectives cut each rank's segment into pieces, of which so many
// are on their way at a time.
inline constexpr int64_t kPiecesInFlight = 8;
// Bytes of a piece when `size` ranks reduce.
int64_t ReducePieceBytes(int size);
// Most bytes of scratch of an all-reduce or reduce-scatter of `tensor_bytes`
// (its input) among `size` ranks.
int64_t ReduceScratchBytes(int64_t tensor_bytes, int size);
// Most bytes of scratch that any reducing collective of `tensor_bytes` (its
// input) among `size` ranks takes.
int64_t CollectiveScratchBytes(int64_t tensor_bytes, int size);

// Extents of the blocks in which bf16 operands are widened where the processor
// has no bf16 product.
inline constexpr int64_t kWidenedOuterBlock = 2048;
inline constexpr int64_t kWidenedInnerBlock = 4096;

// Most bytes that the ops of one micro-batch of `rows` tokens take at a time,
// on up to two threads: attention's scratch of each thread (a few 100 KB more
// for each further one), partial sums of norms' gradients, or widened blocks.
int64_t OpWorkspaceBytes(const ModelSpec& model, const TrainingSpec& training,
                         int64_t rows);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MODEL_WORKSPACE_H_
