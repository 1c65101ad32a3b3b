#include "common/files/content_hash.h"

#include <xxhash.h>

#include "absl/strings/str_format.h"
#include "common/log.h"

namespace lockstep {
namespace {

std::string Hex128(XXH128_hash_t hash) {
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

}  // namespace

struct ContentHash::State {
  State() : xxh3(XXH3_createState()) {
    CHECK(xxh3 != nullptr) << "no memory for a hash";
    XXH3_128bits_reset(xxh3);
  }
  ~State() { XXH3_freeState(xxh3); }
  XXH3_state_t* const xxh3;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {}

ContentHash::~ContentHash() = default;

void ContentHash::Add(std::string_view bytes) {
  XXH3_128bits_update(state_->xxh3, bytes.data(), bytes.size());
}

std::string ContentHash::Hex() const {
  return Hex128(XXH3_128bits_digest(state_->xxh3));
}

std::string HashHex(std::string_view bytes) {
  return Hex128(XXH3_128bits(bytes.data(), bytes.size()));
}

}  // namespace lockstep
