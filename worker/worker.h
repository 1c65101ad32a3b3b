// Worker: the lockstep-worker daemon, put together (composition root only).
//
// It offers its devices to the coordinator, starts and watches the ranks that
// the coordinator places on them, and passes on what they say.
//
//   auto worker = Worker::Start(options);
//   ... wait for SIGTERM ...
//   (*worker)->ShutDown("SIGTERM");
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_WORKER_WORKER_H_
#define LOCKSTEP_WORKER_WORKER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/address.h"
#include "common/clock.h"
#include "worker/agent/device_inventory.h"

namespace lockstep {

class Worker {
 public:
  struct Options {
    // The coordinator's addresses; not empty.
    std::vector<Address> coordinators;
    std::string name;
    // Changes with each start of the process.
    std::string incarnation;
    DeviceInventory inventory;
    // Compute threads of a rank; absent: cores / devices, at least 1.
    std::optional<int64_t> threads;
    // Absolute paths; made if they are not there.
    std::string job_root;
    std::string data_root;
    // What the coordinator and people see as this worker's host.
    std::string address;
    // Address or interface for the ranks' own traffic.
    std::string data_address;
    // Where /metrics is served; absent: nowhere.
    std::optional<Address> metrics;
    // Absolute path of lockstep-rank.
    std::string rank_program;
    // Where the folder of the Unix socket is made.
    std::string runtime_parent = "/tmp";
    Clock* clock = nullptr;  // must outlive the worker
  };

  // UNAVAILABLE if a socket can't be bound or a folder not be made. The
  // coordinator need not be there.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(Options options);
  // Kills the ranks that still run.
  virtual ~Worker() = default;

  // Takes no new gang, stops the ranks (cause lost_worker, with `reason`) and
  // waits until the coordinator knows, 17 s at most. DEADLINE_EXCEEDED if a
  // rank can't be killed: the destructor would wait for it.
  virtual absl::Status ShutDown(const std::string& reason) = 0;

  virtual std::optional<Address> metrics_address() const = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_WORKER_H_
