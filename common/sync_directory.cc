#include "common/sync_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

absl::Status Failed(const char* action, const std::string& path) {
  if (errno == ENOSPC || errno == EDQUOT) {
    return absl::ResourceExhaustedError(
        absl::StrCat("can't ", action, " ", path, ": the disk is full"));
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("can't ", action, " ", path));
}

}  // namespace

absl::Status SyncDirectory(const std::string& path) {
  const int directory = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return Failed("open", path);
  absl::Status status;
  if (fsync(directory) != 0) status = Failed("sync", path);
  close(directory);
  return status;
}

}  // namespace lockstep
