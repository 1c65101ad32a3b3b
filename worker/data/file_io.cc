#include "worker/data/file_io.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_format.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

constexpr size_t kWriteBuffer = 1 << 20;

std::string Hex(XXH128_hash_t hash) {
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

}  // namespace

absl::Status FileError(int error, std::string_view action,
                       std::string_view path) {
  const std::string message =
      StrCat("can't ", action, " ", path, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(message);
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
      return absl::InvalidArgumentError(message);
    default:
      return absl::UnavailableError(message);
  }
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<MappedFile> MappedFile::Map(int fd, const std::string& path,
                                           int64_t bytes) {
  MappedFile file;
  if (bytes == 0) return file;
  void* data =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return FileError(errno, "map", path);
  file.data_ = data;
  file.bytes_ = bytes;
  return file;
}

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return FileError(errno, "open", path);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return FileError(errno, "stat", path);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(StrCat(path, " is not a regular file"));
  }
  return Map(fd.get(), path, info.st_size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          int64_t most_bytes) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return FileError(errno, "open", path);
  std::string text;
  while (true) {
    constexpr size_t kStep = 64 << 10;
    const size_t held = text.size();
    text.resize(held + kStep);
    const ssize_t got = read(fd.get(), text.data() + held, kStep);
    if (got < 0 && errno != EINTR) return FileError(errno, "read", path);
    text.resize(held + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return text;
    if (static_cast<int64_t>(text.size()) > most_bytes) {
      return absl::OutOfRangeError(
          StrCat(path, " is larger than ", most_bytes, " bytes"));
    }
  }
}

std::string HashHex(std::string_view bytes) {
  return Hex(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string SampledHashHex(std::string_view bytes) {
  constexpr size_t kBlocks = 64;
  constexpr size_t kBlock = 64 << 10;
  std::string sample = StrCat(bytes.size(), "\n");
  if (bytes.size() <= kBlocks * kBlock) {
    sample.append(bytes);
  } else {
    const size_t last = bytes.size() - kBlock;
    for (size_t i = 0; i < kBlocks; ++i) {
      // i last / (kBlocks - 1) without a product that overflows.
      const size_t whole = last / (kBlocks - 1);
      const size_t rest = last % (kBlocks - 1);
      sample.append(bytes.substr(i * whole + i * rest / (kBlocks - 1), kBlock));
    }
  }
  return HashHex(sample);
}

struct HashedFileWriter::HashState {
  HashState() : state(XXH3_createState()) { XXH3_128bits_reset(state); }
  ~HashState() { XXH3_freeState(state); }
  XXH3_state_t* const state;
};

HashedFileWriter::HashedFileWriter(UniqueFd fd, std::string path)
    : fd_(std::move(fd)),
      path_(std::move(path)),
      hash_(std::make_unique<HashState>()) {
  buffer_.reserve(kWriteBuffer);
}

HashedFileWriter::~HashedFileWriter() = default;

absl::StatusOr<std::unique_ptr<HashedFileWriter>> HashedFileWriter::Create(
    const std::string& path) {
  UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return FileError(errno, "create", path);
  return std::unique_ptr<HashedFileWriter>(
      new HashedFileWriter(std::move(fd), path));
}

absl::Status HashedFileWriter::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t part = std::min(bytes.size(), kWriteBuffer - buffer_.size());
    buffer_.append(bytes.substr(0, part));
    bytes.remove_prefix(part);
    if (buffer_.size() == kWriteBuffer) RETURN_IF_ERROR(Flush());
  }
  return absl::OkStatus();
}

absl::Status HashedFileWriter::Flush() {
  CHECK(fd_.valid()) << path_ << " is finished";
  XXH3_128bits_update(hash_->state, buffer_.data(), buffer_.size());
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t wrote = write(fd_.get(), rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      return FileError(errno, StrCat("write ", rest.size(), " bytes to"),
                       path_);
    }
    rest.remove_prefix(static_cast<size_t>(wrote));
  }
  bytes_ += static_cast<int64_t>(buffer_.size());
  buffer_.clear();
  return absl::OkStatus();
}

absl::StatusOr<HashedFileWriter::Written> HashedFileWriter::Finish() {
  RETURN_IF_ERROR(Flush());
  if (fsync(fd_.get()) != 0) return FileError(errno, "sync", path_);
  fd_ = UniqueFd();
  return Written{bytes_, Hex(XXH3_128bits_digest(hash_->state))};
}

absl::StatusOr<HashedFileWriter::Written> WriteSmallFile(
    const std::string& path, std::string_view bytes) {
  ASSIGN_OR_RETURN(auto writer, HashedFileWriter::Create(path));
  RETURN_IF_ERROR(writer->Append(bytes));
  return writer->Finish();
}

}  // namespace lockstep
