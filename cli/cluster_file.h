// The local cluster's folder: who owns it, and where its daemons listen.
//
//   DIR/run.lock      held (flock) by the `lockstep` process whose daemons run
//   DIR/cluster.json  its pid and the daemons' pids and addresses
//   DIR/state.db, DIR/jobs/, DIR/logs/
#ifndef LOCKSTEP_CLI_CLUSTER_FILE_H_
#define LOCKSTEP_CLI_CLUSTER_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

struct ClusterFile {
  // The `lockstep` process.
  int64_t pid = 0;
  // HOST:PORT.
  std::string coordinator;
  std::string metrics;
  std::vector<int64_t> daemon_pids;

  absl::Status Write(const std::string& folder) const;
  // NOT_FOUND if there is none; INVALID_ARGUMENT if it is broken.
  static absl::StatusOr<ClusterFile> Read(const std::string& folder);
  static void Remove(const std::string& folder);
};

// Ownership of a local cluster's folder, given up by destruction or death.
class FolderLock {
 public:
  // FAILED_PRECONDITION, with the pid, while another process owns it. The
  // folder must exist.
  static absl::StatusOr<std::unique_ptr<FolderLock>> Acquire(
      const std::string& folder);
  // Whether some process owns it; false if there is no such folder.
  static bool IsHeld(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(int file) : file_(file) {}
  const int file_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_CLUSTER_FILE_H_
