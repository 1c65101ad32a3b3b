#include "worker/optim/state_arena.h"

#include "common/status_macros.h"
#include "kernels/ops/copy.h"
#include "kernels/ops/elementwise.h"

namespace lockstep {

absl::StatusOr<OwnedTensor> MakeStateArena(Stream& stream,
                                           const ParameterStore& store) {
  ASSIGN_OR_RETURN(
      OwnedTensor arena,
      AllocateTensor(stream, DType::kFloat32, {store.shard_elements()},
                     MemoryCategory::kOptimizerState, RowPadding::kDense));
  RETURN_IF_ERROR(ops::Zero(stream, arena));
  return arena;
}

absl::StatusOr<OwnedTensor> MakeRatios(Stream& stream, size_t count) {
  return AllocateTensor(stream, DType::kFloat32, {static_cast<int64_t>(count)},
                        MemoryCategory::kBuffer, RowPadding::kDense);
}

absl::StatusOr<StepScalars> ReadScalars(Stream& stream,
                                        const StepScalars* scalars) {
  static_assert(sizeof(StepScalars) % sizeof(int32_t) == 0);
  StepScalars host;
  // The tensor only says where to read from.
  const Tensor view(const_cast<StepScalars*>(scalars), DType::kInt32,
                    {sizeof(StepScalars) / sizeof(int32_t)}, stream.device());
  RETURN_IF_ERROR(ops::CopyToHost(stream, view, &host));
  return host;
}

}  // namespace lockstep
