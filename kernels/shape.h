// Extents of a tensor, outermost first. At most kMaxDims of them.
#ifndef LOCKSTEP_KERNELS_SHAPE_H_
#define LOCKSTEP_KERNELS_SHAPE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "common/log.h"

namespace lockstep {

class Shape {
 public:
  static constexpr int kMaxDims = 4;

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) {
    CHECK(extents.size() <= kMaxDims) << extents.size() << " dims";
    for (int64_t extent : extents) extents_[rank_++] = extent;
  }

  int rank() const { return rank_; }
  int64_t operator[](int dim) const { return extents_[dim]; }
  // Product of all extents; 1 for a scalar.
  int64_t elements() const {
    int64_t product = 1;
    for (int i = 0; i < rank_; ++i) product *= extents_[i];
    return product;
  }
  bool operator==(const Shape& other) const = default;
  // "(4, 128)".
  std::string ToString() const {
    std::string text = "(";
    for (int i = 0; i < rank_; ++i) {
      if (i > 0) text += ", ";
      text += std::to_string(extents_[i]);
    }
    return text + ")";
  }

 private:
  std::array<int64_t, kMaxDims> extents_ = {0, 0, 0, 0};
  int rank_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_SHAPE_H_
