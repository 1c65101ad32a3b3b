#include "common/model/logical_tensor.h"

#include <algorithm>

namespace lockstep {
namespace {

int64_t Product(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (int64_t extent : shape) product *= extent;
  return product;
}

}  // namespace

int64_t LogicalTensor::elements() const { return Product(shape); }

int64_t LogicalTensor::held_elements() const { return Product(held_shape); }

void ForEachRun(
    const LogicalTensor& tensor, int64_t begin, int64_t count,
    absl::FunctionRef<void(int64_t whole, int64_t held, int64_t elements)>
        run) {
  // Elements behind the split dim move together.
  int64_t inner = 1;
  for (size_t dim = tensor.split_dim + 1; dim < tensor.shape.size(); ++dim) {
    inner *= tensor.shape[dim];
  }
  const int64_t held_row = tensor.held_shape[tensor.split_dim] * inner;
  const int64_t whole_row = tensor.shape[tensor.split_dim] * inner;
  const int64_t end = begin + count;
  for (int64_t held = begin; held < end;) {
    const int64_t row = held / held_row, column = held % held_row;
    // Where rows are held whole, all is one run.
    const int64_t elements = held_row == whole_row || tensor.split_dim == 0
                                 ? end - held
                                 : std::min(end - held, held_row - column);
    run(row * whole_row + tensor.split_begin * inner + column, held, elements);
    held += elements;
  }
}

}  // namespace lockstep
