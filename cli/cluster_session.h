// ClusterSession: the cluster that a command works with, in this order: the one
// of --coordinator; the local one of --dir; the one of LOCKSTEP_COORDINATOR;
// that of the current context; the local one of .lockstep. A local cluster is
// used while its daemons live, else started for this command and stopped with
// the session.
#ifndef LOCKSTEP_CLI_CLUSTER_SESSION_H_
#define LOCKSTEP_CLI_CLUSTER_SESSION_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/console.h"
#include "cli/coordinator_client.h"
#include "cli/local_cluster.h"
#include "cli/stop_token.h"
#include "lockstep/v1/job_service.pb.h"

namespace lockstep {

inline constexpr char kDefaultFolder[] = ".lockstep";

// Flags that all commands take.
struct ClusterFlags {
  // --coordinator; empty: not given.
  std::string coordinator;
  // --dir; absent: not given.
  std::optional<std::string> folder;
};

class ClusterSession {
 public:
  enum class LocalStart { kIfNeeded, kNever };
  struct Options {
    ClusterFlags flags;
    LocalStart local_start = LocalStart::kIfNeeded;
    // Must outlive the session.
    StopToken* stop = nullptr;
  };

  // UNAVAILABLE: the coordinator can't be reached, or nothing is configured and
  // there is no local cluster. INVALID_ARGUMENT: flags or contexts are broken.
  static absl::StatusOr<std::unique_ptr<ClusterSession>> Open(
      const Options& options, const Console& console);

  CoordinatorClient& client() { return *client_; }
  // Whether it is a local cluster, alive before or not.
  bool is_local() const { return !folder_.empty(); }

  // Starts the workers that `job` ran with, if the cluster was started by this
  // session, or is another command's that started none and has none (`top`,
  // say); else does nothing.
  absl::Status StartWorkersFor(const v1::JobInfo& job);

  // From now on the command can't be begun anew: it has changed or printed
  // something.
  void MarkBegun() { begun_ = true; }
  // The local cluster was another process's, which has ended and taken it
  // along, and the command may be begun anew with a session of its own.
  bool CanBeReopened() const;

 private:
  ClusterSession() = default;
  absl::Status OpenRemote(const Options& options, const std::string& address);
  absl::Status OpenLocal(const Options& options, const Console& console);
  absl::Status StartLocal(const Options& options);

  std::string folder_;
  LocalCluster::Options local_;
  LocalStart local_start_ = LocalStart::kIfNeeded;
  bool begun_ = false;
  // Whether the folder's owner is this session.
  bool is_owner_ = false;
  // Started by this session, or its own workers alone; null if it has started
  // nothing. The client goes first.
  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<CoordinatorClient> client_;
};

// The address that is configured apart from --dir, and what said so, for
// messages; absent: the local cluster.
struct ConfiguredCoordinator {
  std::string address;
  std::string source;
};
absl::StatusOr<std::optional<ConfiguredCoordinator>> FindConfigured(
    const Console& console);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_CLUSTER_SESSION_H_
