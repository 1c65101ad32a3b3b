#include "common/files/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/files/content_hash.h"
#include "common/files/file_error.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// Bytes read at a time for a hash.
constexpr uint64_t kBlockBytes = uint64_t{1} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<FileReader>> FileReader::Open(
    const std::string& path) {
  // Not blocking: a pipe of that name must not hold us up.
  const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int descriptor;
  do {
    descriptor = open(path.c_str(), flags);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return FileError(errno, "open", path);
  UniqueFd fd(descriptor);
  struct stat information;
  if (fstat(fd.get(), &information) != 0) {
    return FileError(errno, "look at", path);
  }
  if (!S_ISREG(information.st_mode)) {
    return absl::DataLossError(absl::StrCat(path, " is not a regular file"));
  }
  return absl::WrapUnique(
      new FileReader(path, std::move(fd), information.st_size));
}

absl::Status FileReader::Read(uint64_t offset, void* out,
                              uint64_t bytes) const {
  char* next = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got =
        pread(fd_.get(), next, bytes, static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      return FileError(
          error, absl::StrCat("read ", bytes, " bytes at ", offset, " of"),
          path_);
    }
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(path_, " ends at byte ", offset,
                                              ", want ", bytes, " more"));
    }
    next += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> FileReader::Hash(
    const std::function<void()>& alive) const {
  ContentHash hash;
  std::string block(std::min(bytes_, kBlockBytes), '\0');
  for (uint64_t offset = 0; offset < bytes_;) {
    const uint64_t bytes = std::min(bytes_ - offset, kBlockBytes);
    if (alive) alive();
    RETURN_IF_ERROR(Read(offset, block.data(), bytes));
    hash.Add(std::string_view(block).substr(0, bytes));
    offset += bytes;
  }
  return hash.Hex();
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path,
                                          uint64_t limit_bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FileReader> file,
                   FileReader::Open(path));
  if (file->bytes() > limit_bytes) {
    return absl::DataLossError(absl::StrCat(
        path, " has ", file->bytes(), " bytes, want at most ", limit_bytes));
  }
  std::string contents(file->bytes(), '\0');
  RETURN_IF_ERROR(file->Read(0, contents.data(), contents.size()));
  return contents;
}

}  // namespace lockstep
