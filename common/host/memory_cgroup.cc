#include "common/host/memory_cgroup.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/host/small_file.h"

namespace lockstep {
namespace {

// v1's "no limit" is the largest multiple of a page.
constexpr uint64_t kNoLimitV1 = uint64_t{1} << 62;

}  // namespace

std::optional<int64_t> ReadCounter(const std::string& text,
                                   const std::string& key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    int64_t value = 0;
    if (absl::ConsumePrefix(&line, key) && absl::ConsumePrefix(&line, " ") &&
        absl::SimpleAtoi(line, &value)) {
      return value;
    }
  }
  return std::nullopt;
}

MemoryCgroup MemoryCgroup::Find(const std::string& root) {
  MemoryCgroup cgroup;
  cgroup.root_ = root;
  cgroup.group_ = FindControlGroup(root, "memory");
  return cgroup;
}

std::optional<uint64_t> MemoryCgroup::LimitBytes() const {
  std::optional<uint64_t> lowest;
  for (const std::string& folder : group_.folders) {
    const auto text = ReadSmallFile(
        folder + (group_.v2 ? "/memory.max" : "/memory.limit_in_bytes"));
    uint64_t limit = 0;
    // v2 writes "max" for none.
    if (!text.ok() || !absl::SimpleAtoi(*text, &limit)) continue;
    if (!group_.v2 && limit >= kNoLimitV1) continue;
    lowest = std::min(lowest.value_or(limit), limit);
  }
  return lowest;
}

int64_t MemoryCgroup::OomKills() const {
  if (!group_.folders.empty()) {
    const auto text =
        ReadSmallFile(group_.folders[0] +
                      (group_.v2 ? "/memory.events" : "/memory.oom_control"));
    if (text.ok()) {
      if (const auto count = ReadCounter(*text, "oom_kill")) return *count;
    }
  }
  const auto text = ReadSmallFile(root_ + "/proc/vmstat");
  return text.ok() ? ReadCounter(*text, "oom_kill").value_or(0) : 0;
}

}  // namespace lockstep
