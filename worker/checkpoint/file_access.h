// Files as checkpoints need them: whole writes that are hashed on the way and
// synced, reads of exact ranges, and a Status that names the path for each
// failure.
//
// Errors: RESOURCE_EXHAUSTED on a full disk, quota or file size limit;
// NOT_FOUND; PERMISSION_DENIED; DATA_LOSS when a file ends early.
#ifndef LOCKSTEP_WORKER_CHECKPOINT_FILE_ACCESS_H_
#define LOCKSTEP_WORKER_CHECKPOINT_FILE_ACCESS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lockstep {

// The status of `error` (an errno) at `action` ("writing") on `path`.
absl::Status FileError(int error, const std::string& action,
                       const std::string& path);

// XXH3 with 128 bits, over bytes that come piece by piece.
class FileHash {
 public:
  FileHash();
  ~FileHash();
  void Add(const void* data, int64_t bytes);
  // 32 hex digits.
  std::string Hex() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

std::string HashOf(const std::string& contents);

// A new file. Removed when it goes without Finish.
class FileWriter {
 public:
  // Replaces a file that is there.
  static absl::StatusOr<std::unique_ptr<FileWriter>> Create(
      const std::string& path);
  ~FileWriter();

  absl::Status Write(const void* data, int64_t bytes);
  // Syncs and closes; the file stays. Once.
  absl::Status Finish();
  uint64_t bytes() const { return bytes_; }
  std::string hash() const { return hash_.Hex(); }

 private:
  FileWriter(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  const std::string path_;
  int descriptor_;
  bool finished_ = false;
  uint64_t bytes_ = 0;
  FileHash hash_;
};

// An open regular file. Threads: any, all functions are const.
class FileReader {
 public:
  // Symbolic links are not followed.
  static absl::StatusOr<std::unique_ptr<FileReader>> Open(
      const std::string& path);
  ~FileReader();

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  // Exactly bytes [offset, offset + bytes).
  absl::Status Read(uint64_t offset, void* out, uint64_t bytes) const;
  // Of the whole file.
  absl::StatusOr<std::string> Hash() const;

 private:
  FileReader(std::string path, int descriptor, uint64_t bytes)
      : path_(std::move(path)), descriptor_(descriptor), bytes_(bytes) {}

  const std::string path_;
  const int descriptor_;
  const uint64_t bytes_;
};

// All of a file of at most `limit_bytes` (DATA_LOSS if it is larger).
absl::StatusOr<std::string> ReadWholeFile(const std::string& path,
                                          uint64_t limit_bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_CHECKPOINT_FILE_ACCESS_H_
