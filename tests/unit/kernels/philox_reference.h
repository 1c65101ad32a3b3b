// Philox4x32-10, a word at a time (Salmon et al., SC 2011, section 3.3), and
// dropout's use of it.
#ifndef LOCKSTEP_TESTS_UNIT_KERNELS_PHILOX_REFERENCE_H_
#define LOCKSTEP_TESTS_UNIT_KERNELS_PHILOX_REFERENCE_H_

#include <array>
#include <cstdint>

namespace lockstep {

inline std::array<uint32_t, 4> PhiloxReference(std::array<uint32_t, 4> counter,
                                               std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Whether dropout of this probability keeps an element (kernels/ops/dropout.h).
inline bool KeptReference(double probability, uint64_t key, uint32_t step,
                          uint32_t sample, uint32_t position,
                          uint32_t element) {
  const uint32_t word =
      PhiloxReference({element / 4, position, sample, step},
                      {static_cast<uint32_t>(key),
                       static_cast<uint32_t>(key >> 32)})[element % 4];
  return word >= static_cast<uint64_t>(probability * 4294967296.0 + 0.5);
}

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_KERNELS_PHILOX_REFERENCE_H_
