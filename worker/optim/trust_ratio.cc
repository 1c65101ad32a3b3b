#include "worker/optim/trust_ratio.h"

#include <cmath>

#include "common/status_macros.h"
#include "kernels/ops/copy.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/optimizer.h"
#include "kernels/owned_tensor.h"

namespace lockstep {

absl::StatusOr<std::vector<double>> RangeNorms(
    Stream& stream, const std::vector<UpdateRange>& ranges,
    const Tensor& arena) {
  const int64_t count = static_cast<int64_t>(ranges.size());
  // Two 4-byte elements for each fp64 sum.
  ASSIGN_OR_RETURN(OwnedTensor sums,
                   AllocateTensor(stream, DType::kInt32, {2 * count},
                                  MemoryCategory::kBuffer, RowPadding::kDense));
  RETURN_IF_ERROR(ops::Zero(stream, sums));
  for (int64_t i = 0; i < count; ++i) {
    const FlatRange range = ranges[i].range;
    RETURN_IF_ERROR(ops::SumOfSquares(
        stream, arena.Slice(range.begin, range.end - range.begin),
        sums->data<double>() + i));
  }
  std::vector<double> norms(count);
  RETURN_IF_ERROR(ops::CopyToHost(stream, sums, norms.data()));
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

}  // namespace lockstep
