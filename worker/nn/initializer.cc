#include "worker/nn/initializer.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "kernels/ops/dropout.h"

namespace lockstep {
namespace {

// One block of Philox4x32-10 (Salmon et al., SC 2011, section 3.3).
std::array<uint32_t, 4> Philox(uint64_t key, uint64_t block) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  std::array<uint32_t, 4> counter = {static_cast<uint32_t>(block),
                                     static_cast<uint32_t>(block >> 32), 0, 0};
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
               static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// Two standard normal values of two words.
std::array<double, 2> BoxMuller(uint32_t a, uint32_t b) {
  constexpr double kUnit = 1.0 / 4294967296.0;
  const double radius = std::sqrt(-2.0 * std::log((a + 0.5) * kUnit));
  const double angle = 2.0 * std::numbers::pi * (b + 0.5) * kUnit;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace

void InitializeValues(const LogicalTensor& tensor, uint64_t seed,
                      int64_t offset, absl::Span<float> values) {
  if (tensor.initializer != Initializer::kNormal) {
    const float value = tensor.initializer == Initializer::kOnes ? 1.0f : 0.0f;
    std::fill(values.begin(), values.end(), value);
    return;
  }
  const uint64_t key =
      SiteKey(seed, XXH3_64bits(tensor.name.data(), tensor.name.size()));
  const int64_t end = offset + static_cast<int64_t>(values.size());
  for (int64_t block = offset / 4; block * 4 < end; ++block) {
    const std::array<uint32_t, 4> words = Philox(key, block);
    const std::array<double, 2> first = BoxMuller(words[0], words[1]);
    const std::array<double, 2> second = BoxMuller(words[2], words[3]);
    const double normal[4] = {first[0], first[1], second[0], second[1]};
    for (int lane = 0; lane < 4; ++lane) {
      const int64_t element = block * 4 + lane;
      if (element < offset || element >= end) continue;
      values[element - offset] =
          static_cast<float>(normal[lane] * tensor.init_scale);
    }
  }
}

}  // namespace lockstep
