// SplitMix64: well-mixed bits of a counter (Steele, Lea and Flood, OOPSLA
// 2014). Sample orders and dropout masks depend on it: it never changes.
#ifndef LOCKSTEP_COMMON_SPLIT_MIX_H_
#define LOCKSTEP_COMMON_SPLIT_MIX_H_

#include <cstdint>

namespace lockstep {

// By how much the counter rises: 2^64 over the golden ratio.
inline constexpr uint64_t kSplitMixStep = 0x9e3779b97f4a7c15u;

// The finaliser: the random number of counter `x`.
inline constexpr uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SPLIT_MIX_H_
