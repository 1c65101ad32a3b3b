// Hashes of what files hold: XXH3 with 128 bits, as 32 hex digits, high half
// first.
#ifndef LOCKSTEP_COMMON_FILES_CONTENT_HASH_H_
#define LOCKSTEP_COMMON_FILES_CONTENT_HASH_H_

#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

// Over bytes that come piece by piece.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void Add(std::string_view bytes);
  // Of what was added so far.
  std::string Hex() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// Over all of `bytes`.
std::string HashHex(std::string_view bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FILES_CONTENT_HASH_H_
