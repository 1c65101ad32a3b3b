#include "common/files/file_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/files/file_error.h"
#include "common/log.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// Smaller pieces are gathered to so many bytes; larger ones are handed to the
// system in parts of that size, which are hashed while they are in the cache.
constexpr size_t kBlockBytes = 1 << 20;
// Synced as often: the last sync would else take minutes on a slow disk.
constexpr int64_t kSyncBytes = int64_t{64} << 20;

}  // namespace

FileWriter::FileWriter(UniqueFd fd, std::string path)
    : fd_(std::move(fd)), path_(std::move(path)) {}

FileWriter::~FileWriter() {
  if (!finished_) unlink(path_.c_str());
}

absl::StatusOr<std::unique_ptr<FileWriter>> FileWriter::Create(
    const std::string& path, const FileWriterOptions& options) {
  const int present = options.if_present == FileWriterOptions::IfPresent::kFail
                          ? O_EXCL
                          : O_TRUNC;
  const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | present;
  int fd;
  do {
    fd = open(path.c_str(), flags, options.mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return FileError(errno, "create", path);
  return absl::WrapUnique(new FileWriter(UniqueFd(fd), path));
}

absl::Status FileWriter::Append(std::string_view bytes) {
  CHECK(fd_.valid()) << path_ << " is finished";
  while (!bytes.empty()) {
    const size_t part = std::min(bytes.size(), kBlockBytes - buffer_.size());
    if (part == kBlockBytes) {
      RETURN_IF_ERROR(Write(bytes.substr(0, part)));
    } else {
      buffer_.append(bytes.substr(0, part));
    }
    bytes.remove_prefix(part);
    if (buffer_.size() == kBlockBytes) {
      RETURN_IF_ERROR(Write(buffer_));
      buffer_.clear();
    }
  }
  return absl::OkStatus();
}

absl::Status FileWriter::Write(std::string_view bytes) {
  hash_.Add(bytes);
  while (!bytes.empty()) {
    const ssize_t wrote = write(fd_.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int error = errno;
      return FileError(
          error,
          absl::StrCat("write ", bytes.size(), " bytes at ", bytes_, " of"),
          path_);
    }
    bytes.remove_prefix(static_cast<size_t>(wrote));
    bytes_ += wrote;
  }
  if (bytes_ - synced_ >= kSyncBytes) {
    if (fdatasync(fd_.get()) != 0) return FileError(errno, "sync", path_);
    synced_ = bytes_;
  }
  return absl::OkStatus();
}

absl::StatusOr<WrittenFile> FileWriter::Finish() {
  CHECK(fd_.valid()) << path_ << " is finished";
  RETURN_IF_ERROR(Write(buffer_));
  buffer_.clear();
  if (fsync(fd_.get()) != 0) return FileError(errno, "sync", path_);
  if (close(fd_.release()) != 0) return FileError(errno, "close", path_);
  finished_ = true;
  return WrittenFile{bytes_, hash_.Hex()};
}

absl::StatusOr<WrittenFile> WriteWholeFile(const std::string& path,
                                           std::string_view bytes,
                                           const FileWriterOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> file,
                   FileWriter::Create(path, options));
  RETURN_IF_ERROR(file->Append(bytes));
  return file->Finish();
}

}  // namespace lockstep
