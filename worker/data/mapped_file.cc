#include "worker/data/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <memory>

#include "common/files/file_error.h"
#include "common/files/file_reader.h"
#include "common/status_macros.h"

namespace lockstep {

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
  ASSIGN_OR_RETURN(const std::unique_ptr<FileReader> file,
                   FileReader::Open(path));
  return Map(file->fd(), path, static_cast<int64_t>(file->bytes()));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
}

}  // namespace lockstep
