// The row stride of activations: shared by the engine, which allocates with it,
// and the memory count.
#ifndef LOCKSTEP_COMMON_ROW_STRIDE_H_
#define LOCKSTEP_COMMON_ROW_STRIDE_H_

#include <cstdint>

#include "common/dtype.h"

namespace lockstep {

// Row stride, in elements, for an activation of `cols` columns: 64 bytes more
// than a row when the row is a multiple of 1024 bytes, else the row rounded up
// to 64 bytes. Where rows are a multiple of 4096 bytes apart their starts share
// cache sets, which halves the speed of matrix products.
constexpr int64_t PaddedRowStride(int64_t cols, DType dtype) {
  const int64_t line = 64 / SizeOf(dtype);
  const int64_t rounded = (cols + line - 1) / line * line;
  return rounded * SizeOf(dtype) % 1024 == 0 ? rounded + line : rounded;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_ROW_STRIDE_H_
