#include "worker/nn/device_batch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "kernels/ops/copy.h"

namespace lockstep {
namespace {

// `batch` with rows added until `parts` divides them.
MicroBatch Padded(const MicroBatch& batch, int64_t parts) {
  MicroBatch padded = batch;
  const int64_t rows = (batch.rows() + parts - 1) / parts * parts;
  const int64_t added = rows - batch.rows();
  if (added == 0) return padded;
  // A target for each row; or for each sample, and then what follows is unused.
  if (batch.targets.size() == batch.tokens.size()) {
    padded.targets.resize(rows, -1);
  }
  padded.tokens.resize(rows, 0);
  padded.samples.resize(rows, 0);
  for (int64_t i = 0; i < added; ++i) {
    // One that every position table has, however many rows are added.
    padded.positions.push_back(0);
    padded.sample_positions.push_back(static_cast<int32_t>(i));
  }
  padded.segment_bounds.push_back(static_cast<int32_t>(rows));
  padded.max_segment_rows = std::max(padded.max_segment_rows, added);
  return padded;
}

// Index tensors, gathered on the host and copied as one block.
class HostBlock {
 public:
  // Returns the place of the values.
  template <typename Values>
  size_t Add(const Values& values) {
    places_.emplace_back(host_.size(), values.size());
    for (const auto value : values) {
      host_.push_back(static_cast<int32_t>(value));
    }
    return places_.size() - 1;
  }
  // This rank's of one value for each row.
  template <typename T>
  size_t AddOwn(const std::vector<T>& values, const ContextCut& cut) {
    const int64_t rows = static_cast<int64_t>(values.size()) / cut.chunks;
    std::vector<T> own;
    for (const int64_t chunk : cut.own) {
      own.insert(own.end(), values.begin() + chunk * rows,
                 values.begin() + (chunk + 1) * rows);
    }
    return Add(own);
  }

  absl::StatusOr<OwnedTensor> Copy(Stream& stream) {
    ASSIGN_OR_RETURN(
        OwnedTensor storage,
        AllocateTensor(stream, DType::kInt32,
                       {static_cast<int64_t>(host_.size())},
                       MemoryCategory::kBuffer, RowPadding::kDense));
    RETURN_IF_ERROR(ops::CopyFromHost(stream, host_.data(), storage));
    storage_ = storage;
    return storage;
  }
  Tensor View(size_t place) const {
    return storage_.Slice(static_cast<int64_t>(places_[place].first),
                          static_cast<int64_t>(places_[place].second));
  }
  RowOrigin Origin(size_t samples, size_t positions) const {
    const Tensor sample = View(samples);
    return {
        Tensor(sample.raw(), DType::kUInt32, sample.shape(), sample.device()),
        View(positions)};
  }

 private:
  std::vector<int32_t> host_;
  std::vector<std::pair<size_t, size_t>> places_;
  Tensor storage_;
};

// Where the bounds and offsets of a chunk lie.
struct ChunkPlaces {
  size_t bounds;
  size_t offsets;
  int64_t max_rows;
};

ChunkPlaces AddChunk(const MicroBatch& batch, int64_t begin, int64_t end,
                     HostBlock& block) {
  std::vector<int32_t> bounds, offsets;
  ChunkPlaces places = {};
  for (size_t s = 0; s < batch.segment_bounds.size(); ++s) {
    const int64_t bound = batch.segment_bounds[s];
    const int64_t within = std::clamp(bound, begin, end);
    bounds.push_back(static_cast<int32_t>(within - begin));
    if (s > 0) {
      places.max_rows =
          std::max<int64_t>(places.max_rows, bounds[s] - bounds[s - 1]);
    }
    if (s + 1 < batch.segment_bounds.size()) {
      offsets.push_back(static_cast<int32_t>(within - bound));
    }
  }
  places.bounds = block.Add(bounds);
  places.offsets = block.Add(offsets);
  return places;
}

}  // namespace

int64_t BatchPlace::Rows(int64_t rows) const {
  const int64_t padded = (rows + multiple() - 1) / multiple() * multiple();
  return padded / context.chunks * static_cast<int64_t>(context.own.size());
}

absl::StatusOr<DeviceBatch> StageBatch(Stream& stream,
                                       const MicroBatch& unpadded,
                                       const BatchPlace& place) {
  const MicroBatch batch = Padded(unpadded, place.multiple());
  const ContextCut& cut = place.context;
  const bool per_row = batch.targets.size() == batch.tokens.size();
  HostBlock block;
  const size_t tokens = block.AddOwn(batch.tokens, cut);
  const size_t positions = block.AddOwn(batch.positions, cut);
  const size_t sample_positions = block.AddOwn(batch.sample_positions, cut);
  const size_t samples = block.AddOwn(batch.samples, cut);
  const size_t targets =
      per_row ? block.AddOwn(batch.targets, cut) : block.Add(batch.targets);
  const size_t segment_bounds = block.Add(batch.segment_bounds);
  const size_t sample_bounds = block.Add(batch.sample_bounds);
  size_t whole_positions = sample_positions, whole_samples = samples;
  std::vector<ChunkPlaces> chunks;
  if (cut.chunks > 1) {
    whole_positions = block.Add(batch.sample_positions);
    whole_samples = block.Add(batch.samples);
    const int64_t rows = batch.rows() / cut.chunks;
    for (int64_t chunk = 0; chunk < cut.chunks; ++chunk) {
      chunks.push_back(
          AddChunk(batch, chunk * rows, (chunk + 1) * rows, block));
    }
  }

  DeviceBatch staged;
  ASSIGN_OR_RETURN(staged.storage, block.Copy(stream));
  staged.rows = place.Rows(unpadded.rows());
  staged.last_row = unpadded.rows() - 1;
  staged.samples = static_cast<int64_t>(batch.sample_bounds.size()) - 1;
  staged.tokens = block.View(tokens);
  staged.positions = block.View(positions);
  staged.origin = block.Origin(samples, sample_positions);
  const int64_t own = staged.rows / place.residual.parts;
  staged.residual_origin = {
      staged.origin.sample.Slice(place.residual.index * own, own),
      staged.origin.position.Slice(place.residual.index * own, own)};
  staged.targets = block.View(targets);
  staged.whole_rows = batch.rows();
  staged.whole_origin = block.Origin(whole_samples, whole_positions);
  staged.max_segment_rows = batch.max_segment_rows;
  staged.segment_bounds = block.View(segment_bounds);
  staged.sample_bounds = block.View(sample_bounds);
  for (const ChunkPlaces& places : chunks) {
    staged.chunks.push_back({block.View(places.bounds),
                             block.View(places.offsets), places.max_rows});
  }
  return staged;
}

}  // namespace lockstep
