// OwnedTensor: a tensor and the memory it views. Move-only; converts to Tensor.
#ifndef LOCKSTEP_KERNELS_OWNED_TENSOR_H_
#define LOCKSTEP_KERNELS_OWNED_TENSOR_H_

#include <utility>

#include "absl/status/statusor.h"
#include "kernels/allocator.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace lockstep {

class OwnedTensor {
 public:
  OwnedTensor() = default;
  OwnedTensor(Buffer buffer, Tensor tensor)
      : buffer_(std::move(buffer)), tensor_(tensor) {}
  OwnedTensor(OwnedTensor&&) = default;
  OwnedTensor& operator=(OwnedTensor&& other) noexcept {
    buffer_ = std::move(other.buffer_);
    tensor_ = std::exchange(other.tensor_, Tensor());
    return *this;
  }

  const Tensor& get() const { return tensor_; }
  // Passed to ops as the tensor that it is.
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator const Tensor&() const { return tensor_; }
  const Tensor* operator->() const { return &tensor_; }
  bool empty() const { return tensor_.empty(); }
  void Reset() { *this = OwnedTensor(); }

 private:
  Buffer buffer_;
  Tensor tensor_;
};

enum class RowPadding { kDense, kPadded };

// An uninitialised tensor in the stream's device memory.
absl::StatusOr<OwnedTensor> AllocateTensor(Stream& stream, DType dtype,
                                           Shape shape, MemoryCategory category,
                                           RowPadding padding);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_OWNED_TENSOR_H_
