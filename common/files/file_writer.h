// FileWriter: a file that is written front to back, hashed on the way, and
// synced before it counts.
//
//   ASSIGN_OR_RETURN(auto file, FileWriter::Create(path, options));
//   RETURN_IF_ERROR(file->Append(bytes));
//   ASSIGN_OR_RETURN(const WrittenFile written, file->Finish());
//
// Errors name the path (common/files/file_error.h).
#ifndef LOCKSTEP_COMMON_FILES_FILE_WRITER_H_
#define LOCKSTEP_COMMON_FILES_FILE_WRITER_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/content_hash.h"
#include "common/files/unique_fd.h"

namespace lockstep {

struct WrittenFile {
  int64_t bytes = 0;
  std::string hash;  // HashHex of the whole
};

struct FileWriterOptions {
  enum class IfPresent { kFail, kReplace };
  // What becomes of a file that has the name already.
  IfPresent if_present = IfPresent::kFail;
  // Permissions; the process's umask is taken off.
  mode_t mode = 0600;
};

class FileWriter {
 public:
  // Symbolic links are not followed.
  static absl::StatusOr<std::unique_ptr<FileWriter>> Create(
      const std::string& path, const FileWriterOptions& options = {});
  // Removes the file unless it was finished.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  absl::Status Append(std::string_view bytes);
  // Syncs and closes; the file stays. Once, and no Append after it.
  absl::StatusOr<WrittenFile> Finish();

 private:
  FileWriter(UniqueFd fd, std::string path);
  // Hashes and writes.
  absl::Status Write(std::string_view bytes);

  UniqueFd fd_;
  const std::string path_;
  bool finished_ = false;
  ContentHash hash_;
  std::string buffer_;
  int64_t bytes_ = 0;  // written, without what is buffered
  int64_t synced_ = 0;
};

// Writes, syncs and closes a file that holds `bytes`.
absl::StatusOr<WrittenFile> WriteWholeFile(
    const std::string& path, std::string_view bytes,
    const FileWriterOptions& options = {});

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FILES_FILE_WRITER_H_
