#include "worker/agent/memory_cgroup.h"

#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "worker/agent/proc_files.h"

namespace lockstep {
namespace {

// v1's "no limit" is the largest multiple of a page.
constexpr uint64_t kNoLimitV1 = uint64_t{1} << 62;

bool FolderExists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Path of this process's group in the hierarchy that `controller` names; the
// empty one is v2's.
std::optional<std::string> GroupPath(const std::string& proc_cgroup,
                                     absl::string_view controller) {
  for (absl::string_view line : absl::StrSplit(proc_cgroup, '\n')) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    for (absl::string_view name : absl::StrSplit(parts[1], ',')) {
      if (name == controller) return parts[2];
    }
  }
  return std::nullopt;
}

struct Mount {
  std::string root;   // the part of the hierarchy that is mounted
  std::string point;  // where
};

// The mount of the v2 hierarchy, or of v1's memory controller.
std::optional<Mount> FindMount(const std::string& mountinfo, bool v2) {
  for (absl::string_view line : absl::StrSplit(mountinfo, '\n')) {
    const std::vector<std::string> halves =
        absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    if (halves.size() != 2) continue;
    const std::vector<std::string> left = absl::StrSplit(halves[0], ' ');
    const std::vector<std::string> right = absl::StrSplit(halves[1], ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    bool wanted = v2 && right[0] == "cgroup2";
    if (!v2 && right[0] == "cgroup") {
      const std::vector<std::string> options = absl::StrSplit(right[2], ',');
      wanted =
          std::find(options.begin(), options.end(), "memory") != options.end();
    }
    if (wanted) return Mount{left[3], left[4]};
  }
  return std::nullopt;
}

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
  const std::string groups =
      ReadSmallFile(root + "/proc/self/cgroup").value_or("");
  const std::string mounts =
      ReadSmallFile(root + "/proc/self/mountinfo").value_or("");
  // A hybrid host has both; the memory controller is then v1's.
  for (const bool v2 : {false, true}) {
    const std::optional<std::string> path =
        GroupPath(groups, v2 ? "" : "memory");
    const std::optional<Mount> mount = FindMount(mounts, v2);
    if (!path.has_value() || !mount.has_value()) continue;
    // In a container the mount often shows only the container's part.
    absl::string_view below = *path;
    if (mount->root != "/") absl::ConsumePrefix(&below, mount->root);
    std::string folder = root + mount->point;
    if (below != "/") folder += std::string(below);
    if (!FolderExists(folder)) folder = root + mount->point;
    const size_t top = (root + mount->point).size();
    cgroup.folders_.push_back(folder);
    while (folder.size() > top) {
      folder.resize(folder.rfind('/'));
      cgroup.folders_.push_back(folder);
    }
    cgroup.v2_ = v2;
    break;
  }
  return cgroup;
}

std::optional<uint64_t> MemoryCgroup::LimitBytes() const {
  std::optional<uint64_t> lowest;
  for (const std::string& folder : folders_) {
    const auto text = ReadSmallFile(
        folder + (v2_ ? "/memory.max" : "/memory.limit_in_bytes"));
    uint64_t limit = 0;
    // v2 writes "max" for none.
    if (!text.ok() || !absl::SimpleAtoi(*text, &limit)) continue;
    if (!v2_ && limit >= kNoLimitV1) continue;
    lowest = std::min(lowest.value_or(limit), limit);
  }
  return lowest;
}

int64_t MemoryCgroup::OomKills() const {
  if (!folders_.empty()) {
    const auto text = ReadSmallFile(
        folders_[0] + (v2_ ? "/memory.events" : "/memory.oom_control"));
    if (text.ok()) {
      if (const auto count = ReadCounter(*text, "oom_kill")) return *count;
    }
  }
  const auto text = ReadSmallFile(root_ + "/proc/vmstat");
  return text.ok() ? ReadCounter(*text, "oom_kill").value_or(0) : 0;
}

}  // namespace lockstep
