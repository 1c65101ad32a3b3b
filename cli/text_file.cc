#include "cli/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace lockstep {

absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         size_t most_bytes) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return absl::ErrnoToStatus(errno, path);
  const auto close_file = absl::MakeCleanup([file] { close(file); });
  struct stat about = {};
  if (fstat(file, &about) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(about.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a file"));
  }
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = read(file, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, path);
    if (got == 0) return text;
    text.append(buffer, got);
    if (text.size() > most_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": has more than ", most_bytes, " bytes"));
    }
  }
}

absl::Status ReplaceTextFile(const std::string& path, const std::string& text) {
  const std::string draft = absl::StrCat(path, ".", getpid(), ".new");
  const int file =
      open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return absl::ErrnoToStatus(errno, draft);
  absl::Cleanup remove_draft = [&draft] { unlink(draft.c_str()); };
  size_t done = 0;
  int failure = 0;
  while (done < text.size() && failure == 0) {
    const ssize_t wrote = write(file, text.data() + done, text.size() - done);
    if (wrote >= 0) {
      done += wrote;
    } else if (errno != EINTR) {
      failure = errno;
    }
  }
  if (close(file) != 0 && failure == 0) failure = errno;
  if (failure == 0 && rename(draft.c_str(), path.c_str()) != 0) failure = errno;
  if (failure != 0) return absl::ErrnoToStatus(failure, path);
  std::move(remove_draft).Cancel();
  return absl::OkStatus();
}

absl::Status MakeFolders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return absl::ErrnoToStatus(error.value(), path);
  if (!std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a folder"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
