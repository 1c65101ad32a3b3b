// LocalCluster: a coordinator and workers on this host, as children of this
// process, with their state in one folder.
//
//   auto cluster = LocalCluster::Start(options);
//   auto client = CoordinatorClient::Connect({.address =
//   (*cluster)->address()});
//   (*cluster)->AddWorkers({.count = 2}, **client);
//   ...
//   (*cluster)->Stop();
//
// A dead coordinator is started again on the same port, a worker never. All
// children die with this process.
// Threads: KillNow may be called from any thread; the rest from one at a time.
#ifndef LOCKSTEP_CLI_LOCAL_CLUSTER_H_
#define LOCKSTEP_CLI_LOCAL_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cli/cluster_file.h"
#include "cli/coordinator_client.h"
#include "cli/daemon_process.h"
#include "cli/stop_token.h"

namespace lockstep {

class LocalCluster {
 public:
  struct Options {
    // Made if absent.
    std::string folder;
    // Where lockstep-coordinator and lockstep-worker are.
    std::string program_folder;
    // Ends waits. Must outlive the cluster.
    const StopToken* stop = nullptr;
  };

  struct Workers {
    // One device each.
    int64_t count = 1;
    // Memory of each device. Absent: 90 % of the host's over all.
    std::optional<uint64_t> memory_per_device;
  };

  // Takes the folder, starts the coordinator and writes cluster.json.
  //   FAILED_PRECONDITION: another process owns the folder (its pid is named),
  //     or the coordinator refuses to start.
  static absl::StatusOr<std::unique_ptr<LocalCluster>> Start(Options options);
  // Nothing yet, for workers that join the coordinator at `address`, which the
  // folder's owner runs. Takes and writes nothing of the folder but their logs.
  static std::unique_ptr<LocalCluster> Attach(Options options,
                                              std::string address);
  // Stops what still runs.
  ~LocalCluster();

  // Cancels jobs that an earlier owner of the folder left waiting: nobody
  // follows them any more, and they would take the workers of the next job.
  absl::Status CancelLeftovers(CoordinatorClient& client);

  // Starts workers and waits until `client`'s coordinator has them all.
  absl::Status AddWorkers(const Workers& workers, CoordinatorClient& client);

  // HOST:PORT of the coordinator.
  const std::string& address() const { return file_.coordinator; }
  const std::string& metrics_address() const { return file_.metrics; }

  // Ends the workers, then the coordinator, kindly at first; at most 40 s.
  void Stop();
  // SIGKILLs all children at once.
  void KillNow();

 private:
  explicit LocalCluster(Options options) : options_(std::move(options)) {}
  absl::Status StartCoordinator();
  void AddDaemon(std::unique_ptr<DaemonProcess> daemon);
  // Whether the folder and the coordinator are ours.
  bool is_owner() const { return lock_ != nullptr; }

  const Options options_;
  std::unique_ptr<FolderLock> lock_;
  ClusterFile file_;
  absl::Mutex mutex_;
  // The coordinator first, if it is ours. Grows only.
  std::vector<std::unique_ptr<DaemonProcess>> daemons_ ABSL_GUARDED_BY(mutex_);
  bool killed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LOCAL_CLUSTER_H_
