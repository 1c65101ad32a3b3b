// FileReader: exact ranges of an open regular file. It reads with pread and not
// through a mapping: a file that shrinks gives a Status.
//
// Errors name the path (common/files/file_error.h). DATA_LOSS: the file ends
// early, or is none.
#ifndef LOCKSTEP_COMMON_FILES_FILE_READER_H_
#define LOCKSTEP_COMMON_FILES_FILE_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/unique_fd.h"

namespace lockstep {

// Threads: any, all functions are const.
class FileReader {
 public:
  // Symbolic links are not followed.
  static absl::StatusOr<std::unique_ptr<FileReader>> Open(
      const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }
  // Exactly bytes [offset, offset + bytes).
  absl::Status Read(uint64_t offset, void* out, uint64_t bytes) const;
  // HashHex of the whole file. `alive` is called between blocks; it may be
  // empty.
  absl::StatusOr<std::string> Hash(
      const std::function<void()>& alive = {}) const;

 private:
  FileReader(std::string path, UniqueFd fd, uint64_t bytes)
      : path_(std::move(path)), fd_(std::move(fd)), bytes_(bytes) {}

  const std::string path_;
  const UniqueFd fd_;
  const uint64_t bytes_;
};

// All of a file of at most `limit_bytes` (DATA_LOSS if it is larger).
absl::StatusOr<std::string> ReadWholeFile(const std::string& path,
                                          uint64_t limit_bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FILES_FILE_READER_H_
