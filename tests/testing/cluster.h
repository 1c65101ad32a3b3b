// Cluster: a coordinator and workers as a platform engineer starts them by
// hand, in a Sandbox.
//
//   Sandbox sandbox;
//   Cluster cluster(sandbox, {.workers = 2});
//   const CommandResult submit = sandbox.Lockstep({"submit", job, ...});
//
// Commands run in the sandbox find the cluster by LOCKSTEP_COORDINATOR. Job
// root and data root are folders of the sandbox, `jobs` and `data`.
// CHECK-fails if a daemon doesn't come up. The destructor kills the daemons.
#ifndef LOCKSTEP_TESTS_TESTING_CLUSTER_H_
#define LOCKSTEP_TESTS_TESTING_CLUSTER_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/testing/child_process.h"
#include "tests/testing/sandbox.h"

namespace lockstep {
namespace testing {

struct ClusterOptions {
  int workers = 2;
  // Devices of each worker, all "cpu".
  int devices = 1;
  std::string memory_per_device = "1GiB";
};

class Cluster {
 public:
  Cluster(Sandbox& sandbox, const ClusterOptions& options);

  // "127.0.0.1:PORT".
  const std::string& address() const { return address_; }
  ChildProcess& coordinator() { return *coordinator_; }
  ChildProcess& worker(int index) { return *workers_.at(index); }

  // Kills the coordinator with SIGKILL and waits for its end.
  void KillCoordinator();
  // Starts it again on the same port and store.
  void StartCoordinator();
  // Starts one more worker.
  void StartWorker();

 private:
  Sandbox& sandbox_;
  const ClusterOptions options_;
  std::string address_;
  std::unique_ptr<ChildProcess> coordinator_;
  std::vector<std::unique_ptr<ChildProcess>> workers_;
};

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_CLUSTER_H_
