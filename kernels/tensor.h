// Tensor: a typed view of device memory. It owns nothing and is cheap to copy;
// whoever allocated the memory (an OwnedTensor, a parameter arena) must outlive
// it. The last dim is contiguous. All other dims are seen as rows, which are
// `row_stride` elements apart: activations pad their rows, because some leading
// dimensions halve a matrix product's speed (common/row_stride.h).
#ifndef LOCKSTEP_KERNELS_TENSOR_H_
#define LOCKSTEP_KERNELS_TENSOR_H_

#include <cstdint>

#include "common/dtype.h"
#include "common/log.h"
#include "common/row_stride.h"
#include "kernels/shape.h"

namespace lockstep {

enum class DeviceKind : uint8_t { kCpu, kCuda };

class Tensor {
 public:
  Tensor() = default;
  // Dense when `row_stride` is 0.
  Tensor(void* data, DType dtype, Shape shape, DeviceKind device,
         int64_t row_stride = 0)
      : data_(data),
        shape_(shape),
        row_stride_(row_stride > 0 ? row_stride : LastExtent(shape)),
        dtype_(dtype),
        device_(device) {
    CHECK(row_stride_ >= LastExtent(shape))
        << "row stride " << row_stride << " below " << shape.ToString();
  }

  bool empty() const { return data_ == nullptr; }
  void* raw() const { return data_; }
  template <typename T>
  T* data() const {
    return static_cast<T*>(data_);
  }
  DType dtype() const { return dtype_; }
  DeviceKind device() const { return device_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  // Extent of the last dim; 1 for a scalar.
  int64_t cols() const { return LastExtent(shape_); }
  // Product of all dims but the last.
  int64_t rows() const { return cols() == 0 ? 0 : elements() / cols(); }
  int64_t row_stride() const { return row_stride_; }
  bool dense() const { return row_stride_ == cols(); }
  // Bytes of the elements, padding not counted.
  int64_t bytes() const { return elements() * SizeOf(dtype_); }

  // Rows [begin, begin + count) of the matrix that rows() x cols() is.
  Tensor Rows(int64_t begin, int64_t count) const {
    CHECK(begin >= 0 && count >= 0 && begin + count <= rows())
        << "rows " << begin << " + " << count << " of " << rows();
    return Tensor(Offset(begin * row_stride_), dtype_, {count, cols()}, device_,
                  row_stride_);
  }
  // Columns [begin, begin + count) of that matrix.
  Tensor Columns(int64_t begin, int64_t count) const {
    CHECK(begin >= 0 && count >= 0 && begin + count <= cols())
        << "columns " << begin << " + " << count << " of " << cols();
    return Tensor(Offset(begin), dtype_, {rows(), count}, device_, row_stride_);
  }
  // The same elements under another shape; must be dense, or keep cols().
  Tensor Reshaped(Shape shape) const {
    CHECK(shape.elements() == elements() &&
          (dense() || LastExtent(shape) == cols()))
        << shape_.ToString() << " as " << shape.ToString();
    return Tensor(data_, dtype_, shape, device_,
                  LastExtent(shape) == cols() ? row_stride_ : 0);
  }
  // The memory of all rows, their padding included, as one dim.
  Tensor WithPadding() const {
    return Tensor(data_, dtype_, {rows() * row_stride_}, device_);
  }
  // Elements [begin, begin + count) of a dense tensor, as one dim.
  Tensor Slice(int64_t begin, int64_t count) const {
    CHECK(dense() && begin >= 0 && count >= 0 && begin + count <= elements())
        << "elements " << begin << " + " << count << " of " << elements();
    return Tensor(Offset(begin), dtype_, {count}, device_);
  }

 private:
  static int64_t LastExtent(const Shape& shape) {
    return shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  }
  void* Offset(int64_t count) const {
    return static_cast<char*>(data_) + count * SizeOf(dtype_);
  }

  void* data_ = nullptr;
  Shape shape_;
  int64_t row_stride_ = 0;
  DType dtype_ = DType::kFloat32;
  DeviceKind device_ = DeviceKind::kCpu;
};

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_TENSOR_H_
