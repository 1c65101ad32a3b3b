#include "common/model/workspace.h"

#include <algorithm>

#include "common/spec/job_spec.h"

namespace lockstep {
namespace {

constexpr int64_t kScratchBytes = int64_t{4} << 20;
constexpr int64_t kMaxPieceBytes = int64_t{512} << 10;
constexpr int64_t kMinPieceBytes = int64_t{16} << 10;

// What attention takes of its threads, the larger of forward and backward: see
// ForwardScratch and BackwardScratch in kernels/cpu/level.
int64_t AttentionBytes(const ModelSpec& model, int64_t segment_rows) {
  constexpr int64_t kThreads = 2;
  constexpr int64_t kQueryBlock = 48, kKeyBlock = 128, kMostLanes = 16;
  constexpr int64_t kChunkRows = 384;
  const int64_t width =
      (model.head_width + kMostLanes - 1) / kMostLanes * kMostLanes;
  const int64_t rows = segment_rows * (model.heads / model.kv_heads);
  const int64_t chunk = std::min(rows, kChunkRows);
  const int64_t forward = kQueryBlock * kKeyBlock + 2 * kKeyBlock * width +
                          2 * chunk * width + 2 * chunk;
  const int64_t backward = 2 * kQueryBlock * kKeyBlock +
                           2 * kQueryBlock * width + 5 * kKeyBlock * width +
                           rows * width + rows;
  return kThreads * 4 * (std::max(forward, backward) + 32);
}

int64_t NormBytes(const ModelSpec& model, int64_t rows) {
  const int64_t blocks = std::min<int64_t>(256, (rows + 31) / 32);
  return blocks * 2 * model.width * 4;
}

int64_t WidenedBytes(const ModelSpec& model, int64_t rows) {
  const int64_t widest =
      std::max({model.width, 2 * model.feed_forward_width,
                (model.heads + 2 * model.kv_heads) * model.head_width, rows});
  const int64_t outer = std::min(kWidenedOuterBlock, widest);
  const int64_t inner = std::min(kWidenedInnerBlock, widest);
  // Both operands and the result, rows padded.
  return 4 * (2 * outer * (inner + 32) + outer * (outer + 32));
}

}  // namespace

int64_t ReducePieceBytes(int size) {
  const int64_t peers = std::max(1, size - 1);
  return std::clamp(kScratchBytes / kPiecesInFlight / peers / 64 * 64,
                    kMinPieceBytes, kMaxPieceBytes);
}

int64_t ReduceScratchBytes(int64_t tensor_bytes, int size) {
  if (size == 1) return 0;
  return std::min((size - 1) * kPiecesInFlight * ReducePieceBytes(size),
                  (size - 1) * tensor_bytes);
}

int64_t CollectiveScratchBytes(int64_t tensor_bytes, int size) {
  if (size == 1) return 0;
  // A reduce to a root keeps its segment beside the tensor; segments are
  // rounded up by less than this.
  constexpr int64_t kRounding = 256;
  return ReduceScratchBytes(tensor_bytes, size) + tensor_bytes / size +
         kRounding;
}

int64_t OpWorkspaceBytes(const ModelSpec& model, const TrainingSpec& training,
                         int64_t rows) {
  const int64_t most =
      std::max(AttentionBytes(model, std::min(rows, training.sequence_length)),
               NormBytes(model, rows));
  if (training.precision != v1::PRECISION_BF16) return most;
  return std::max(most, WidenedBytes(model, rows));
}

}  // namespace lockstep
