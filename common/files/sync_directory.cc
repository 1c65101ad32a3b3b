#include "common/files/sync_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "common/files/file_error.h"
#include "common/files/unique_fd.h"

namespace lockstep {

absl::Status SyncDirectory(const std::string& path) {
  const UniqueFd directory(
      open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return FileError(errno, "open", path);
  if (fsync(directory.get()) != 0) return FileError(errno, "sync", path);
  return absl::OkStatus();
}

}  // namespace lockstep
