// Files as the data folder reads and writes them: owned descriptors, read-only
// mappings, and files that are hashed while they are written.
//
// Errors carry path and reason. RESOURCE_EXHAUSTED: the disk, the quota or the
// file size limit is full.
#ifndef LOCKSTEP_WORKER_DATA_FILE_IO_H_
#define LOCKSTEP_WORKER_DATA_FILE_IO_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

// The status of `error` (an errno) of what was done ("open") to `path`.
absl::Status FileError(int error, std::string_view action,
                       std::string_view path);

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A whole file, mapped read-only. Move-only; the bytes live as long as it.
class MappedFile {
 public:
  MappedFile() = default;
  // Maps the first `bytes` of an open file.
  static absl::StatusOr<MappedFile> Map(int fd, const std::string& path,
                                        int64_t bytes);
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  std::string_view view() const {
    return {static_cast<const char*>(data_), static_cast<size_t>(bytes_)};
  }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

// A small file's bytes; OUT_OF_RANGE above `most_bytes`.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          int64_t most_bytes);

// XXH3 128-bit hash in hex.
std::string HashHex(std::string_view bytes);
// The same of the size and 64 blocks of 64 KiB, evenly spaced from the first to
// the last byte: what is held against a large file that can't be read whole.
std::string SampledHashHex(std::string_view bytes);

// Writes a new file front to back and hashes it on the way.
class HashedFileWriter {
 public:
  struct Written {
    int64_t bytes = 0;
    std::string hash;
  };

  static absl::StatusOr<std::unique_ptr<HashedFileWriter>> Create(
      const std::string& path);
  ~HashedFileWriter();
  HashedFileWriter(const HashedFileWriter&) = delete;
  HashedFileWriter& operator=(const HashedFileWriter&) = delete;

  absl::Status Append(std::string_view bytes);
  // Flushes and syncs; no Append after it.
  absl::StatusOr<Written> Finish();

 private:
  struct HashState;
  HashedFileWriter(UniqueFd fd, std::string path);
  absl::Status Flush();

  UniqueFd fd_;
  const std::string path_;
  std::unique_ptr<HashState> hash_;
  std::string buffer_;
  int64_t bytes_ = 0;
};

// Writes `bytes` to a new file and syncs it.
absl::StatusOr<HashedFileWriter::Written> WriteSmallFile(
    const std::string& path, std::string_view bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FILE_IO_H_
