#include "worker/checkpoint/file_access.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status_macros.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lockstep {
namespace {

// Bytes handed to the system at a time: they are hashed while in the cache.
constexpr int64_t kBlockBytes = int64_t{1} << 20;

int OpenRetrying(const std::string& path, int flags) {
  int descriptor;
  do {
    descriptor = open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

}  // namespace

absl::Status FileError(int error, const std::string& action,
                       const std::string& path) {
  const std::string message =
      absl::StrCat(action, " ", path, ": ", strerror(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(message);
    case EIO:
      return absl::DataLossError(message);
    default:
      return absl::Status(absl::ErrnoToStatusCode(error), message);
  }
}

struct FileHash::State {
  XXH3_state_t xxh3;
};

FileHash::FileHash() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh3);
}

FileHash::~FileHash() = default;

void FileHash::Add(const void* data, int64_t bytes) {
  XXH3_128bits_update(&state_->xxh3, data, bytes);
}

std::string FileHash::Hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

std::string HashOf(const std::string& contents) {
  FileHash hash;
  hash.Add(contents.data(), contents.size());
  return hash.Hex();
}

absl::StatusOr<std::unique_ptr<FileWriter>> FileWriter::Create(
    const std::string& path) {
  const int descriptor =
      OpenRetrying(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  if (descriptor < 0) return FileError(errno, "creating", path);
  return absl::WrapUnique(new FileWriter(path, descriptor));
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!finished_) unlink(path_.c_str());
}

absl::Status FileWriter::Write(const void* data, int64_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const int64_t block = std::min(bytes, kBlockBytes);
    const ssize_t written = write(descriptor_, next, block);
    if (written < 0) {
      if (errno == EINTR) continue;
      return FileError(
          errno, absl::StrCat("writing ", bytes, " bytes at ", bytes_, " of"),
          path_);
    }
    hash_.Add(next, written);
    next += written;
    bytes -= written;
    bytes_ += written;
  }
  return absl::OkStatus();
}

absl::Status FileWriter::Finish() {
  if (fsync(descriptor_) != 0) return FileError(errno, "syncing", path_);
  if (close(std::exchange(descriptor_, -1)) != 0) {
    return FileError(errno, "closing", path_);
  }
  finished_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileReader>> FileReader::Open(
    const std::string& path) {
  // Not blocking: a pipe of that name must not hold us up.
  const int descriptor = OpenRetrying(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return FileError(errno, "opening", path);
  struct stat information;
  const int error = fstat(descriptor, &information) == 0 ? 0 : errno;
  // Owns the descriptor, whatever comes next.
  auto reader = absl::WrapUnique(
      new FileReader(path, descriptor, error == 0 ? information.st_size : 0));
  if (error != 0) return FileError(error, "looking at", path);
  if (!S_ISREG(information.st_mode)) {
    return absl::DataLossError(absl::StrCat(path, " is not a regular file"));
  }
  return reader;
}

FileReader::~FileReader() { close(descriptor_); }

absl::Status FileReader::Read(uint64_t offset, void* out,
                              uint64_t bytes) const {
  char* next = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = pread(descriptor_, next, bytes, offset);
    if (got < 0) {
      if (errno == EINTR) continue;
      return FileError(
          errno, absl::StrCat("reading ", bytes, " bytes at ", offset, " of"),
          path_);
    }
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(path_, " ends at byte ", offset,
                                              ", want ", bytes, " more"));
    }
    next += got;
    offset += got;
    bytes -= got;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> FileReader::Hash() const {
  FileHash hash;
  std::vector<char> block(kBlockBytes);
  for (uint64_t offset = 0; offset < bytes_;) {
    const uint64_t bytes = std::min<uint64_t>(bytes_ - offset, kBlockBytes);
    RETURN_IF_ERROR(Read(offset, block.data(), bytes));
    hash.Add(block.data(), bytes);
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
