#include "worker/data/sampled_hash.h"

#include "common/files/content_hash.h"
#include "worker/data/str_cat.h"

namespace lockstep {

std::string SampledHashHex(std::string_view bytes) {
  constexpr size_t kBlocks = 64;
  constexpr size_t kBlock = 64 << 10;
  std::string sample = StrCat(bytes.size(), "\n");
  if (bytes.size() <= kBlocks * kBlock) {
    sample.append(bytes);
  } else {
    const size_t last = bytes.size() - kBlock;
    for (size_t i = 0; i < kBlocks; ++i) {
      // i last / (kBlocks - 1) without a product that overflows.
      const size_t whole = last / (kBlocks - 1);
      const size_t rest = last % (kBlocks - 1);
      sample.append(bytes.substr(i * whole + i * rest / (kBlocks - 1), kBlock));
    }
  }
  return HashHex(sample);
}

}  // namespace lockstep
