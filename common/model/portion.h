// Portion: a contiguous share of some things.
#ifndef LOCKSTEP_COMMON_MODEL_PORTION_H_
#define LOCKSTEP_COMMON_MODEL_PORTION_H_

#include <cstdint>

namespace lockstep {

// [begin, end).
struct Portion {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool Contains(int64_t thing) const { return begin <= thing && thing < end; }
};

// Portion `index` of `count` of `extent` things; sizes differ by one at most,
// and the last is a largest one.
constexpr Portion PortionOf(int64_t extent, int64_t index, int64_t count) {
  return {extent * index / count, extent * (index + 1) / count};
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MODEL_PORTION_H_
