// Slots: the numbers by which messages of a GlooLink are matched, as hashes of
// what both sides know of a message.
#ifndef LOCKSTEP_WORKER_DIST_SLOT_H_
#define LOCKSTEP_WORKER_DIST_SLOT_H_

#include <cstdint>
#include <initializer_list>

namespace lockstep {

// One round of SplitMix64 (Steele et al., OOPSLA 2014).
constexpr uint64_t MixSlot(uint64_t state, uint64_t value) {
  uint64_t z = state + value + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// The upper bits stay clear: such slots are the link's own.
constexpr uint64_t SlotOfValues(std::initializer_list<uint64_t> values) {
  uint64_t slot = 0;
  for (const uint64_t value : values) slot = MixSlot(slot, value);
  return slot >> 2;
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_SLOT_H_
