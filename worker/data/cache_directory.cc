#include "worker/data/cache_directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "common/files/file_error.h"
#include "common/files/sync_directory.h"
#include "common/status_macros.h"
#include "worker/data/mapped_file.h"
#include "worker/data/sampled_hash.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

constexpr std::string_view kTemporaryPrefix = ".tmp-";
// A directory can be lost to another maker's sweep between its making and its
// locking; that happens once in a blue moon, so a few tries do.
constexpr int kCreateTries = 8;
constexpr int kPublishTries = 8;

absl::Status StdError(const std::error_code& error, std::string_view action,
                      std::string_view path) {
  return FileError(error.value(), action, path);
}

void RemoveTree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

// An exclusive lock of a directory; invalid when another process has it.
UniqueFd TryLock(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid() && flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return UniqueFd();
  return fd;
}

// Whether `fd` is still the directory of that name.
bool IsStillAt(const UniqueFd& fd, const std::string& path) {
  struct stat held;
  struct stat named;
  return fstat(fd.get(), &held) == 0 && stat(path.c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

// Removes temporary directories whose makers are gone.
void Sweep(const std::string& parent) {
  std::error_code error;
  std::filesystem::directory_iterator entry(parent, error);
  const std::filesystem::directory_iterator end;
  for (; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path();
    if (!entry->path().filename().string().starts_with(kTemporaryPrefix)) {
      continue;
    }
    const UniqueFd lock = TryLock(path);
    if (lock.valid()) RemoveTree(path);
  }
}

absl::StatusOr<std::string> MakeTemporary(const std::string& parent) {
  std::string path = StrCat(parent, "/", kTemporaryPrefix, "XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return FileError(errno, "make a folder in", parent);
  }
  return path;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CacheDirectory>> CacheDirectory::Create(
    const std::string& parent) {
  std::error_code error;
  const std::filesystem::path absolute =
      std::filesystem::absolute(parent, error);
  if (!error) std::filesystem::create_directories(absolute, error);
  if (error) return StdError(error, "make", parent);
  Sweep(absolute);
  for (int attempt = 0; attempt < kCreateTries; ++attempt) {
    ASSIGN_OR_RETURN(std::string path, MakeTemporary(absolute));
    UniqueFd lock = TryLock(path);
    if (lock.valid() && IsStillAt(lock, path)) {
      return std::unique_ptr<CacheDirectory>(
          new CacheDirectory(absolute, std::move(path), std::move(lock)));
    }
  }
  return absl::InternalError(StrCat("can't lock a new folder in ", parent));
}

CacheDirectory::~CacheDirectory() {
  if (!published_) RemoveTree(path_);
}

std::string CacheDirectory::File(std::string_view name) const {
  return StrCat(path_, "/", name);
}

absl::StatusOr<CacheFile> CacheDirectory::Describe(
    const std::string& name, const WrittenFile& written) const {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(File(name)));
  return CacheFile{name, written.bytes, written.hash,
                   SampledHashHex(file.view())};
}

absl::StatusOr<std::string> CacheDirectory::Publish(
    const CacheManifest& manifest, const std::string& name,
    const std::function<bool(const std::string& path)>& usable) {
  RETURN_IF_ERROR(
      WriteWholeFile(File(kManifestName), manifest.ToJson()).status());
  RETURN_IF_ERROR(SyncDirectory(path_));
  const std::string target = StrCat(parent_, "/", name);
  for (int attempt = 0; attempt < kPublishTries; ++attempt) {
    if (rename(path_.c_str(), target.c_str()) == 0) {
      published_ = true;
      RETURN_IF_ERROR(SyncDirectory(parent_));
      return target;
    }
    if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) {
      return FileError(errno, "rename a new token cache to", target);
    }
    if (usable(target)) return target;
    // A broken cache goes aside under a temporary name, then away.
    ASSIGN_OR_RETURN(const std::string aside, MakeTemporary(parent_));
    if (rename(target.c_str(), StrCat(aside, "/", name).c_str()) != 0 &&
        errno != ENOENT) {
      const int error = errno;
      RemoveTree(aside);
      return FileError(error, "move aside", target);
    }
    RemoveTree(aside);
  }
  return absl::InternalError(StrCat("can't put a token cache at ", target));
}

}  // namespace lockstep
