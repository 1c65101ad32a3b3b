#include "worker/nn/device_batch.h"

#include <cstring>
#include <vector>

#include "common/status_macros.h"
#include "kernels/ops/copy.h"

namespace lockstep {

absl::StatusOr<DeviceBatch> StageBatch(Stream& stream,
                                       const MicroBatch& batch) {
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
  staged.targets = view(4);
  staged.segment_bounds = view(5);
  staged.sample_bounds = view(6);
  return staged;
}

}  // namespace lockstep
