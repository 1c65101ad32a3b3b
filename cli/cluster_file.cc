#include "cli/cluster_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/text_file.h"
#include "nlohmann/json.hpp"

namespace lockstep {
namespace {

constexpr size_t kMostBytes = 1 << 20;

std::string FilePath(const std::string& folder) {
  return folder + "/cluster.json";
}

std::string LockPath(const std::string& folder) { return folder + "/run.lock"; }

}  // namespace

absl::Status ClusterFile::Write(const std::string& folder) const {
  nlohmann::ordered_json json;
  json["pid"] = pid;
  json["coordinator"] = coordinator;
  json["metrics"] = metrics;
  json["daemon_pids"] = daemon_pids;
  return ReplaceTextFile(FilePath(folder), json.dump(2) + "\n");
}

absl::StatusOr<ClusterFile> ClusterFile::Read(const std::string& folder) {
  const auto text = ReadTextFile(FilePath(folder), kMostBytes);
  if (!text.ok()) return text.status();
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  ClusterFile file;
  const auto integer = [](const nlohmann::json& value) {
    return value.is_number_integer() ? value.get<int64_t>() : 0;
  };
  if (json.is_object() && json.contains("coordinator") &&
      json["coordinator"].is_string() && json.contains("pid")) {
    file.pid = integer(json["pid"]);
    file.coordinator = json["coordinator"].get<std::string>();
    if (json.contains("metrics") && json["metrics"].is_string()) {
      file.metrics = json["metrics"].get<std::string>();
    }
    if (json.contains("daemon_pids") && json["daemon_pids"].is_array()) {
      for (const auto& one : json["daemon_pids"]) {
        file.daemon_pids.push_back(integer(one));
      }
    }
  }
  if (file.pid <= 0 || file.coordinator.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(FilePath(folder), ": can't be understood"));
  }
  return file;
}

void ClusterFile::Remove(const std::string& folder) {
  unlink(FilePath(folder).c_str());
}

absl::StatusOr<std::unique_ptr<FolderLock>> FolderLock::Acquire(
    const std::string& folder) {
  const std::string path = LockPath(folder);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return absl::ErrnoToStatus(errno, path);
  std::unique_ptr<FolderLock> lock(new FolderLock(file));
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return absl::ErrnoToStatus(errno, path);
    const std::string owner(absl::StripAsciiWhitespace(
        ReadTextFile(path, kMostBytes).value_or("")));
    return absl::FailedPreconditionError(
        absl::StrCat(folder, " is in use by the `lockstep` process with pid ",
                     owner.empty() ? "unknown" : owner,
                     "; wait for it, or give another --dir"));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(file, 0) != 0 || pwrite(file, pid.data(), pid.size(), 0) !=
                                     static_cast<ssize_t>(pid.size())) {
    return absl::ErrnoToStatus(errno, path);
  }
  return lock;
}

bool FolderLock::IsHeld(const std::string& folder) {
  const int file = open(LockPath(folder).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool held = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  return held;
}

FolderLock::~FolderLock() { close(file_); }

}  // namespace lockstep
