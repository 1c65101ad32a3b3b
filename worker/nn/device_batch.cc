#include "worker/nn/device_batch.h"

#include <algorithm>
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
    padded.positions.push_back(static_cast<int32_t>(i));
    padded.sample_positions.push_back(static_cast<int32_t>(i));
  }
  padded.segment_bounds.push_back(static_cast<int32_t>(rows));
  padded.max_segment_rows = std::max(padded.max_segment_rows, added);
  return padded;
}

}  // namespace

absl::StatusOr<DeviceBatch> StageBatch(Stream& stream,
                                       const MicroBatch& unpadded,
                                       const RowPart& part) {
  const MicroBatch batch = Padded(unpadded, part.parts);
  // One host block and one copy for all index tensors.
  std::vector<int32_t> host;
  host.reserve(4 * batch.tokens.size() + batch.targets.size() +
               batch.segment_bounds.size() + batch.sample_bounds.size());
  std::vector<std::pair<int64_t, int64_t>> places;
  const auto append = [&](const auto& values) {
    places.emplace_back(host.size(), values.size());
    for (const auto value : values) {
      host.push_back(static_cast<int32_t>(value));
    }
  };
  append(batch.tokens);
  append(batch.positions);
  append(batch.sample_positions);
  append(batch.samples);
  append(batch.targets);
  append(batch.segment_bounds);
  append(batch.sample_bounds);

  DeviceBatch staged;
  staged.rows = batch.rows();
  staged.last_row = unpadded.rows() - 1;
  staged.samples = static_cast<int64_t>(batch.sample_bounds.size()) - 1;
  staged.max_segment_rows = batch.max_segment_rows;
  ASSIGN_OR_RETURN(
      staged.storage,
      AllocateTensor(stream, DType::kInt32, {static_cast<int64_t>(host.size())},
                     MemoryCategory::kBuffer, RowPadding::kDense));
  RETURN_IF_ERROR(ops::CopyFromHost(stream, host.data(), staged.storage));
  const auto view = [&](int i) {
    return staged.storage->Slice(places[i].first, places[i].second);
  };
  staged.tokens = view(0);
  staged.positions = view(1);
  staged.origin.position = view(2);
  const Tensor samples = view(3);
  staged.origin.sample =
      Tensor(samples.raw(), DType::kUInt32, samples.shape(), samples.device());
  const int64_t own = staged.rows / part.parts;
  staged.residual_origin.position =
      staged.origin.position.Slice(part.index * own, own);
  staged.residual_origin.sample =
      staged.origin.sample.Slice(part.index * own, own);
  staged.targets = view(4);
  staged.segment_bounds = view(5);
  staged.sample_bounds = view(6);
  return staged;
}

}  // namespace lockstep
