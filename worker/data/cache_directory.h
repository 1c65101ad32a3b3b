// CacheDirectory: a token cache being written, under a temporary name until it
// is published by one rename. Whoever crashes leaves a temporary directory that
// the next maker removes; two makers of one cache don't disturb each other.
#ifndef LOCKSTEP_WORKER_DATA_CACHE_DIRECTORY_H_
#define LOCKSTEP_WORKER_DATA_CACHE_DIRECTORY_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_writer.h"
#include "common/files/unique_fd.h"
#include "worker/data/cache_manifest.h"

namespace lockstep {

class CacheDirectory {
 public:
  // Makes `parent` where it is missing, removes what crashed makers left in it,
  // and makes a temporary directory there.
  static absl::StatusOr<std::unique_ptr<CacheDirectory>> Create(
      const std::string& parent);
  // Removes the directory unless it was published.
  ~CacheDirectory();
  CacheDirectory(const CacheDirectory&) = delete;
  CacheDirectory& operator=(const CacheDirectory&) = delete;

  // PATH/name.
  std::string File(std::string_view name) const;
  const std::string& path() const { return path_; }
  // The entry of a file that was written into it.
  absl::StatusOr<CacheFile> Describe(const std::string& name,
                                     const WrittenFile& written) const;

  // Writes the manifest, syncs and renames to PARENT/`name`. A cache of that
  // name is kept if `usable` says so of it (another maker was faster), else it
  // is replaced.
  absl::StatusOr<std::string> Publish(
      const CacheManifest& manifest, const std::string& name,
      const std::function<bool(const std::string& path)>& usable);

 private:
  CacheDirectory(std::string parent, std::string path, UniqueFd lock)
      : parent_(std::move(parent)),
        path_(std::move(path)),
        lock_(std::move(lock)) {}

  const std::string parent_;
  const std::string path_;
  // Held while the maker lives: tells a crashed maker's directory from ours.
  const UniqueFd lock_;
  bool published_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CACHE_DIRECTORY_H_
