// SampledHashHex: what is held against a large file that can't be read whole.
#ifndef LOCKSTEP_WORKER_DATA_SAMPLED_HASH_H_
#define LOCKSTEP_WORKER_DATA_SAMPLED_HASH_H_

#include <string>
#include <string_view>

namespace lockstep {

// HashHex of the size and 64 blocks of 64 KiB, evenly spaced from the first to
// the last byte.
std::string SampledHashHex(std::string_view bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_SAMPLED_HASH_H_
