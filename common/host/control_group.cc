#include "common/host/control_group.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/host/small_file.h"

namespace lockstep {
namespace {

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

// The mount of the v2 hierarchy, or of v1's controller.
std::optional<Mount> FindMount(const std::string& mountinfo, bool v2,
                               const std::string& controller) {
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
      wanted = std::find(options.begin(), options.end(), controller) !=
               options.end();
    }
    if (wanted) return Mount{left[3], left[4]};
  }
  return std::nullopt;
}

}  // namespace

ControlGroup FindControlGroup(const std::string& root,
                              const std::string& controller) {
  ControlGroup group;
  const std::string groups =
      ReadSmallFile(root + "/proc/self/cgroup").value_or("");
  const std::string mounts =
      ReadSmallFile(root + "/proc/self/mountinfo").value_or("");
  // A hybrid host has both; the controller is then v1's.
  for (const bool v2 : {false, true}) {
    const std::optional<std::string> path =
        GroupPath(groups, v2 ? "" : controller);
    const std::optional<Mount> mount = FindMount(mounts, v2, controller);
    if (!path.has_value() || !mount.has_value()) continue;
    // In a container the mount often shows only the container's part.
    absl::string_view below = *path;
    if (mount->root != "/") absl::ConsumePrefix(&below, mount->root);
    std::string folder = root + mount->point;
    if (below != "/") folder += std::string(below);
    if (!FolderExists(folder)) folder = root + mount->point;
    const size_t top = (root + mount->point).size();
    group.folders.push_back(folder);
    while (folder.size() > top) {
      folder.resize(folder.rfind('/'));
      group.folders.push_back(folder);
    }
    group.v2 = v2;
    break;
  }
  return group;
}

}  // namespace lockstep
