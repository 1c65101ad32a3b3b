#include "worker/agent/proc_files.h"

#include <unistd.h>

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/host/small_file.h"

namespace lockstep {

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
