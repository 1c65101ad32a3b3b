#include "cli/host_resources.h"

#include <sched.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "cli/text_file.h"

namespace lockstep {
namespace {

constexpr size_t kMostBytes = 1 << 20;

std::string ReadOrEmpty(const std::string& path) {
  return ReadTextFile(path, kMostBytes).value_or("");
}

// The number that a cgroup's limit file holds; none for "max".
std::optional<uint64_t> Limit(const std::string& path) {
  uint64_t bytes = 0;
  if (!absl::SimpleAtoi(ReadOrEmpty(path), &bytes)) return std::nullopt;
  return bytes;
}

// Least limit of the cgroup at `path` below `mount` and of those above it.
uint64_t TightestLimit(const std::string& mount, std::string path,
                       const std::string& file) {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  while (true) {
    least = std::min(
        least, Limit(absl::StrCat(mount, path, "/", file)).value_or(least));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return least;
    path.resize(slash);
  }
}

}  // namespace

int64_t HostCores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

uint64_t HostMemoryBytes(const std::string& root) {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  const std::string memory = ReadOrEmpty(root + "proc/meminfo");
  for (const absl::string_view line : absl::StrSplit(memory, '\n')) {
    if (!absl::StartsWith(line, "MemTotal:")) continue;
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t kib = 0;
    if (words.size() > 1 && absl::SimpleAtoi(words[1], &kib)) {
      least = kib * 1024;
    }
  }
  // Lines "ID:CONTROLLERS:PATH"; version 2 has no controllers.
  const std::string groups = ReadOrEmpty(root + "proc/self/cgroup");
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[1].empty()) {
      least = std::min(
          least, TightestLimit(root + "sys/fs/cgroup", parts[2], "memory.max"));
    } else if (absl::StrContains(absl::StrCat(",", parts[1], ","),
                                 ",memory,")) {
      least = std::min(least, TightestLimit(root + "sys/fs/cgroup/memory",
                                            parts[2], "memory.limit_in_bytes"));
    }
  }
  return least;
}

}  // namespace lockstep
