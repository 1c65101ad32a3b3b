#include "worker/agent/runtime_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr char kPrefix[] = "lockstep-worker-";

FileDescriptor OpenLocked(const std::string& path) {
  FileDescriptor folder(
      open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid() || flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    return FileDescriptor();
  }
  return folder;
}

// Removes the folders of workers that were killed. Best effort: others' folders
// can't be opened, and two workers may do this at once.
void RemoveLeftOvers(const std::string& parent) {
  std::error_code error;
  std::filesystem::directory_iterator it(parent, error);
  for (; !error && it != std::filesystem::directory_iterator();
       it.increment(error)) {
    const std::string path = it->path().string();
    if (!absl::StartsWith(it->path().filename().string(), kPrefix)) continue;
    struct stat info;
    if (lstat(path.c_str(), &info) != 0 || info.st_uid != geteuid()) continue;
    const FileDescriptor lock = OpenLocked(path);
    if (!lock.valid()) continue;
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<RuntimeDir>> RuntimeDir::Make(
    const std::string& parent) {
  RemoveLeftOvers(parent);
  // Another worker that starts now may take the new folder for a left-over
  // before it is locked: then make another.
  constexpr int kAttempts = 5;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string path = absl::StrCat(parent, "/", kPrefix, "XXXXXX");
    if (mkdtemp(path.data()) == nullptr) {
      return absl::UnavailableError(absl::StrCat(
          "can't make a folder in ", parent, ": ", std::strerror(errno)));
    }
    FileDescriptor lock = OpenLocked(path);
    struct stat info;
    if (lock.valid() && stat(path.c_str(), &info) == 0) {
      return std::unique_ptr<RuntimeDir>(
          new RuntimeDir(std::move(path), std::move(lock)));
    }
  }
  return absl::UnavailableError(
      absl::StrCat("can't lock a folder of ours in ", parent));
}

RuntimeDir::~RuntimeDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace lockstep
