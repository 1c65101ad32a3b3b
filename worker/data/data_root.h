// DataRoot: the folder under which a job's inputs must lie. Every open goes
// through it, so that no path of a job file reaches outside.
//
// Below a root other than `/` files are opened with openat2 and
// RESOLVE_BENEATH: `..` and symbolic links may not lead out. An absolute path
// is first made relative to the root, by its text. An absolute symbolic link is
// refused and named. A root of `/` (`lockstep run`) opens plainly.
//
// Threads: const functions may be called from any thread.
// Errors: PERMISSION_DENIED for a path that leads outside; NOT_FOUND;
// UNIMPLEMENTED where the kernel has no openat2.
#ifndef LOCKSTEP_WORKER_DATA_DATA_ROOT_H_
#define LOCKSTEP_WORKER_DATA_DATA_ROOT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files/unique_fd.h"

namespace lockstep {

enum class PathKind { kMissing, kFile, kFolder, kOther };

// An open regular file.
struct OpenedFile {
  UniqueFd fd;
  int64_t bytes = 0;
  int64_t mtime_ns = 0;
};

class DataRoot {
 public:
  static absl::StatusOr<DataRoot> Open(const std::string& root);

  // `path` relative to the root ("." for the root itself).
  absl::StatusOr<std::string> Relative(std::string_view path) const;
  // What to show to people: the absolute path of a relative one.
  std::string Display(std::string_view relative) const;

  // The functions below take relative paths.
  absl::StatusOr<PathKind> Kind(const std::string& relative) const;
  // INVALID_ARGUMENT unless it is a regular file.
  absl::StatusOr<OpenedFile> OpenFile(const std::string& relative) const;
  // Names in a folder, sorted; `.` and `..` left out.
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& relative) const;
  // Paths that match a pattern with *, ? or [...] in any of its components,
  // sorted. A leading dot is matched only by a dot.
  absl::StatusOr<std::vector<std::string>> Glob(
      const std::string& pattern) const;

 private:
  DataRoot(std::string root, UniqueFd fd)
      : root_(std::move(root)), fd_(std::move(fd)) {}
  absl::StatusOr<UniqueFd> OpenBeneath(const std::string& relative,
                                       uint64_t flags) const;
  absl::Status ExplainEscape(const std::string& relative) const;

  std::string root_;  // absolute, no slash at its end ("" for `/`)
  UniqueFd fd_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_DATA_ROOT_H_
