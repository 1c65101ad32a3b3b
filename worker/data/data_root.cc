#include "worker/data/data_root.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/files/file_error.h"
#include "common/status_macros.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

// A rename during resolution makes openat2 give EAGAIN; a few tries pass it.
constexpr int kResolveTries = 16;
constexpr size_t kMostGlobMatches = 1'000'000;

std::string Join(std::string_view folder, std::string_view name) {
  return folder == "." ? std::string(name) : StrCat(folder, "/", name);
}

std::vector<std::string> Components(const std::string& relative) {
  return absl::StrSplit(relative, '/');
}

}  // namespace

absl::StatusOr<DataRoot> DataRoot::Open(const std::string& root) {
  UniqueFd fd(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return FileError(errno, "open data root", root);
  std::unique_ptr<char, void (*)(void*)> absolute(
      realpath(root.c_str(), nullptr), free);
  if (absolute == nullptr) return FileError(errno, "resolve", root);
  // The name as given stays where it is absolute: job files use it.
  std::string name = root.front() == '/' ? root : absolute.get();
  while (name.ends_with("/")) name.pop_back();
  return DataRoot(std::move(name), std::move(fd));
}

std::string DataRoot::Display(std::string_view relative) const {
  if (relative == ".") return root_.empty() ? "/" : root_;
  return StrCat(root_, "/", relative);
}

absl::StatusOr<std::string> DataRoot::Relative(std::string_view path) const {
  if (path.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError("a path holds a NUL byte");
  }
  std::string_view rest = path;
  if (path.starts_with('/')) {
    const bool is_under = path.starts_with(root_);
    if (is_under) rest.remove_prefix(root_.size());
    if (!is_under || !(rest.empty() || rest.front() == '/')) {
      return absl::PermissionDeniedError(
          StrCat(path, " is not under the data root ", Display(".")));
    }
  }
  std::vector<absl::string_view> kept;
  for (const absl::string_view part : absl::StrSplit(AbslView(rest), '/')) {
    if (!part.empty() && part != ".") kept.push_back(part);
  }
  return kept.empty() ? "." : absl::StrJoin(kept, "/");
}

absl::StatusOr<UniqueFd> DataRoot::OpenBeneath(const std::string& relative,
                                               uint64_t flags) const {
  flags |= O_CLOEXEC;
  if (root_.empty()) {
    UniqueFd fd(openat(fd_.get(), relative.c_str(), static_cast<int>(flags)));
    if (!fd.valid()) return FileError(errno, "open", Display(relative));
    return fd;
  }
  open_how how = {};
  how.flags = flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  for (int attempt = 0; attempt < kResolveTries; ++attempt) {
    UniqueFd fd(static_cast<int>(
        syscall(SYS_openat2, fd_.get(), relative.c_str(), &how, sizeof(how))));
    if (fd.valid()) return fd;
    if (errno == EAGAIN || errno == EINTR) continue;
    if (errno == EXDEV) return ExplainEscape(relative);
    if (errno == ENOSYS) {
      return absl::UnimplementedError(StrCat(
          "can't open ", Display(relative),
          ": this kernel has no openat2 (Linux 5.6), which keeps paths under "
          "the data root"));
    }
    return FileError(errno, "open", Display(relative));
  }
  return absl::FailedPreconditionError(StrCat(
      "can't open ", Display(relative), ": its folders keep being renamed"));
}

absl::Status DataRoot::ExplainEscape(const std::string& relative) const {
  const std::string path = Display(relative);
  std::string prefix = ".";
  for (const std::string& part : Components(relative)) {
    prefix = Join(prefix, part);
    char target[PATH_MAX];
    const ssize_t length =
        readlinkat(fd_.get(), prefix.c_str(), target, sizeof(target));
    if (length > 0 && target[0] == '/') {
      return absl::PermissionDeniedError(StrCat(
          path, ": ", Display(prefix), " is an absolute symbolic link to ",
          std::string_view(target, static_cast<size_t>(length)),
          "; under a data root only relative ones are followed"));
    }
  }
  return absl::PermissionDeniedError(
      StrCat(path, " leads outside the data root ", Display(".")));
}

absl::StatusOr<PathKind> DataRoot::Kind(const std::string& relative) const {
  absl::StatusOr<UniqueFd> fd = OpenBeneath(relative, O_PATH);
  if (absl::IsNotFound(fd.status())) return PathKind::kMissing;
  if (!fd.ok()) return fd.status();
  struct stat info;
  if (fstat(fd->get(), &info) != 0) {
    return FileError(errno, "stat", Display(relative));
  }
  if (S_ISREG(info.st_mode)) return PathKind::kFile;
  return S_ISDIR(info.st_mode) ? PathKind::kFolder : PathKind::kOther;
}

absl::StatusOr<OpenedFile> DataRoot::OpenFile(
    const std::string& relative) const {
  // O_NONBLOCK: a pipe without a writer must not hold us up.
  OpenedFile file;
  ASSIGN_OR_RETURN(file.fd, OpenBeneath(relative, O_RDONLY | O_NONBLOCK));
  struct stat info;
  if (fstat(file.fd.get(), &info) != 0) {
    return FileError(errno, "stat", Display(relative));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        StrCat(Display(relative), " is not a regular file"));
  }
  file.bytes = info.st_size;
  file.mtime_ns =
      int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return file;
}

absl::StatusOr<std::vector<std::string>> DataRoot::List(
    const std::string& relative) const {
  ASSIGN_OR_RETURN(UniqueFd fd, OpenBeneath(relative, O_RDONLY | O_DIRECTORY));
  const int copy = dup(fd.get());  // closedir closes its descriptor
  DIR* const folder = copy < 0 ? nullptr : fdopendir(copy);
  if (folder == nullptr) {
    const int error = errno;
    if (copy >= 0) close(copy);
    return FileError(error, "list", Display(relative));
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  const int error = errno;
  closedir(folder);
  if (error != 0) return FileError(error, "list", Display(relative));
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::vector<std::string>> DataRoot::Glob(
    const std::string& pattern) const {
  std::vector<std::string> found = {"."};
  for (const std::string& part : Components(pattern)) {
    std::vector<std::string> next;
    for (const std::string& folder : found) {
      if (part.find_first_of("*?[") == std::string::npos) {
        next.push_back(Join(folder, part));
        continue;
      }
      ASSIGN_OR_RETURN(PathKind kind, Kind(folder));
      if (kind != PathKind::kFolder) continue;
      ASSIGN_OR_RETURN(std::vector<std::string> names, List(folder));
      for (const std::string& name : names) {
        if (fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) == 0) {
          next.push_back(Join(folder, name));
        }
      }
      if (next.size() > kMostGlobMatches) {
        return absl::InvalidArgumentError(StrCat(Display(pattern),
                                                 " matches more than ",
                                                 kMostGlobMatches, " paths"));
      }
    }
    found = std::move(next);
  }
  std::vector<std::string> existing;
  for (std::string& path : found) {
    ASSIGN_OR_RETURN(PathKind kind, Kind(path));
    if (kind != PathKind::kMissing) existing.push_back(std::move(path));
  }
  std::sort(existing.begin(), existing.end());
  return existing;
}

}  // namespace lockstep
