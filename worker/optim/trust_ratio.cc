#include "worker/optim/trust_ratio.h"

#include <cmath>

#include "absl/functional/function_ref.h"
#include "common/status_macros.h"
#include "kernels/ops/copy.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/optimizer.h"
#include "kernels/owned_tensor.h"
#include "worker/optim/state_arena.h"

namespace lockstep {
namespace {

absl::StatusOr<std::vector<double>> TensorNorms(
    Stream& stream, const ParameterStore& store,
    const std::vector<UpdateRange>& ranges,
    absl::FunctionRef<Tensor(const UpdateRange&)> part, const ShardSum& sum) {
  const auto count = static_cast<int64_t>(store.tensors().size());
  // Two 4-byte elements for each fp64 sum.
  ASSIGN_OR_RETURN(OwnedTensor sums,
                   AllocateTensor(stream, DType::kInt32, {2 * count},
                                  MemoryCategory::kBuffer, RowPadding::kDense));
  RETURN_IF_ERROR(ops::Zero(stream, sums));
  for (const UpdateRange& range : ranges) {
    if (!store.tensors()[range.tensor].counted) continue;
    RETURN_IF_ERROR(ops::SumOfSquares(stream, part(range),
                                      sums->data<double>() + range.tensor));
  }
  std::vector<double> norms(count);
  RETURN_IF_ERROR(ops::CopyToHost(stream, sums, norms.data()));
  if (sum != nullptr) RETURN_IF_ERROR(sum(absl::MakeSpan(norms)));
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

}  // namespace

absl::StatusOr<std::vector<double>> MasterNorms(
    Stream& stream, const ParameterStore& store,
    const std::vector<UpdateRange>& ranges, const ShardSum& sum) {
  return TensorNorms(
      stream, store, ranges,
      [&](const UpdateRange& range) {
        return ArenaSlicer(store, range).master();
      },
      sum);
}

absl::StatusOr<std::vector<double>> GradientNorms(
    Stream& stream, const ParameterStore& store,
    const std::vector<UpdateRange>& ranges, const ShardSum& sum) {
  return TensorNorms(
      stream, store, ranges,
      [&](const UpdateRange& range) {
        return ArenaSlicer(store, range).gradient();
      },
      sum);
}

}  // namespace lockstep
