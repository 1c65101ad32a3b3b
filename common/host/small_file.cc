#include "common/host/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep {

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    const std::string why = absl::StrCat(path, ": ", std::strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(why)
                           : absl::UnavailableError(why);
  }
  std::string text;
  char buffer[4096];
  while (text.size() < kMaxBytes) {
    const ssize_t got = read(file, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const std::string why = absl::StrCat(path, ": ", std::strerror(errno));
      close(file);
      return absl::UnavailableError(why);
    }
    if (got == 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  close(file);
  return text;
}

}  // namespace lockstep
