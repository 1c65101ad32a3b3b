#include "common/ids.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "common/log.h"

namespace lockstep {

std::string RandomBase32(int characters) {
  constexpr std::string_view kAlphabet = "0123456789abcdefghjkmnpqrstvwxyz";
  static_assert(kAlphabet.size() == 32);
  std::vector<uint8_t> bytes(static_cast<size_t>(characters));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + done, bytes.size() - done, 0);
    if (got < 0) {
      CHECK(errno == EINTR) << "getrandom failed, errno " << errno;
      continue;
    }
    done += static_cast<size_t>(got);
  }
  std::string id;
  id.reserve(bytes.size());
  for (const uint8_t byte : bytes) id += kAlphabet[byte & 31];
  return id;
}

}  // namespace lockstep
