// MappedFile: a file's bytes, mapped read-only. For files that nobody shortens:
// a mapped file that shrinks kills the process.
#ifndef LOCKSTEP_WORKER_DATA_MAPPED_FILE_H_
#define LOCKSTEP_WORKER_DATA_MAPPED_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace lockstep {

// Move-only; the bytes live as long as it.
class MappedFile {
 public:
  MappedFile() = default;
  // Maps the first `bytes` of an open file.
  static absl::StatusOr<MappedFile> Map(int fd, const std::string& path,
                                        int64_t bytes);
  // Maps a whole file. Errors as FileReader's.
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

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_MAPPED_FILE_H_
