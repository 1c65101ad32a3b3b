#include "kernels/owned_tensor.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {

absl::StatusOr<OwnedTensor> AllocateTensor(Stream& stream, DType dtype,
                                           Shape shape, MemoryCategory category,
                                           RowPadding padding) {
  for (int dim = 0; dim < shape.rank(); ++dim) {
    if (shape[dim] < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor of shape ", shape.ToString(), ": dim ", dim, " is negative"));
    }
  }
  const int64_t cols = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  const int64_t rows = cols == 0 ? 0 : shape.elements() / cols;
  // The padding of the last row is allocated too: kernels may not read it, but
  // a view of all rows then has whole rows.
  const int64_t stride =
      padding == RowPadding::kPadded ? PaddedRowStride(cols, dtype) : cols;
  ASSIGN_OR_RETURN(Buffer buffer, stream.allocator().Allocate(
                                      rows * stride * SizeOf(dtype), category));
  Tensor tensor(buffer.data(), dtype, shape, stream.device(), stride);
  return OwnedTensor(std::move(buffer), tensor);
}

}  // namespace lockstep
