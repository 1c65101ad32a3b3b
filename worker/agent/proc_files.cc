#include "worker/agent/proc_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

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

std::optional<char> ProcessState(pid_t pid) {
  const auto text = ReadSmallFile(absl::StrCat("/proc/", pid, "/stat"));
  if (!text.ok()) return std::nullopt;
  // The name, in parentheses, may hold anything; the state follows the last.
  const size_t close = text->rfind(')');
  if (close == std::string::npos || close + 2 >= text->size()) {
    return std::nullopt;
  }
  return (*text)[close + 2];
}

uint64_t ResidentBytes(pid_t pid) {
  const auto text = ReadSmallFile(absl::StrCat("/proc/", pid, "/statm"));
  if (!text.ok()) return 0;
  const std::vector<std::string> fields = absl::StrSplit(*text, ' ');
  uint64_t pages = 0;
  if (fields.size() < 2 || !absl::SimpleAtoi(fields[1], &pages)) return 0;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace lockstep
