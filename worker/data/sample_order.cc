#include "worker/data/sample_order.h"

#include "common/log.h"
#include "common/split_mix.h"

namespace lockstep {
namespace {

constexpr int kRounds = 8;

// One pass of the network over 2 * half_bits bits: a permutation for any key.
uint64_t Feistel(uint64_t value, uint64_t key, int half_bits) {
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t left = value >> half_bits;
  uint64_t right = value & mask;
  for (int round = 0; round < kRounds; ++round) {
    key += kSplitMixStep;
    const uint64_t next =
        left ^ (MixBits(key ^ MixBits(right + kSplitMixStep)) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits) | right;
}

}  // namespace

SampleOrder::SampleOrder(uint64_t seed, int64_t samples)
    : seed_(seed), samples_(samples), half_bits_(1) {
  CHECK(samples > 0 && samples < (int64_t{1} << 60)) << samples << " samples";
  while ((int64_t{1} << (2 * half_bits_)) < samples) ++half_bits_;
}

int64_t SampleOrder::At(int64_t position) const {
  CHECK(position >= 0) << "position " << position;
  const uint64_t epoch = static_cast<uint64_t>(position / samples_);
  const uint64_t key =
      MixBits(MixBits(seed_ + kSplitMixStep) + kSplitMixStep * (epoch + 1));
  uint64_t value = static_cast<uint64_t>(position % samples_);
  // Walks the cycle until it is back in the range; the domain is less than four
  // times as large (or four where there is one sample), so a few steps do.
  do {
    value = Feistel(value, key, half_bits_);
  } while (value >= static_cast<uint64_t>(samples_));
  return static_cast<int64_t>(value);
}

BatchShare ShareOf(int64_t batch, int64_t index, int64_t count) {
  CHECK(batch >= 0 && count > 0 && index >= 0 && index < count)
      << "share " << index << " of " << count << " of a batch of " << batch;
  // floor(index batch / count) without a product that overflows.
  const int64_t whole = batch / count;
  const int64_t rest = batch % count;
  return {index * whole + index * rest / count,
          (index + 1) * whole + (index + 1) * rest / count};
}

}  // namespace lockstep
