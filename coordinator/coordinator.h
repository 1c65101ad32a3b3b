// Coordinator: the composition root of lockstep-coordinator. Opens the store,
// takes up what an earlier life left, and serves.
//
//   ASSIGN_OR_RETURN(auto coordinator, Coordinator::Start(options, clock));
//   coordinator->address();
//
// The destructor stops serving; ranks train on. Threads: see its members.
#ifndef LOCKSTEP_COORDINATOR_COORDINATOR_H_
#define LOCKSTEP_COORDINATOR_COORDINATOR_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/metrics/metrics_server.h"
#include "common/metrics/registry.h"
#include "common/serial_loop.h"
#include "coordinator/coordinator_metrics.h"
#include "coordinator/jobs/job_table.h"
#include "coordinator/launch/gang_supervisor.h"
#include "coordinator/launch/rendezvous_store.h"
#include "coordinator/membership/worker_registry.h"
#include "coordinator/rpc/job_service.h"
#include "coordinator/rpc/rpc_server.h"
#include "coordinator/rpc/worker_service.h"
#include "coordinator/store/sqlite_job_store.h"

namespace lockstep {

class Coordinator {
 public:
  struct Options {
    Address listen;
    std::string store_path;
    // Absolute; made if need be.
    std::string job_root;
    std::optional<Address> metrics;
    WorkerRegistry::Options workers;
    GangSupervisor::Options gangs;
    // How often deadlines are looked at.
    absl::Duration tick_interval = absl::Milliseconds(100);
  };

  // FAILED_PRECONDITION, DATA_LOSS: the store can't be used. UNAVAILABLE: an
  // address can't be bound. `clock` must outlive the coordinator.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(Options options,
                                                            Clock& clock);
  ~Coordinator();

  const Address& address() const { return server_->address(); }
  // Where metrics are served, if they are.
  std::optional<Address> metrics_address() const;

 private:
  Coordinator() = default;
  // A job has changed its state.
  void NoteMove(const JobRecord& job);
  // Now and then, on blocking_loop_: what may take its time.
  void TickSlowly();

  Clock* clock_ = nullptr;
  MetricsRegistry registry_;
  // The loops go last: what the store's thread posts late finds them stopped.
  std::unique_ptr<SerialLoop> loop_;
  std::unique_ptr<SerialLoop> blocking_loop_;
  std::unique_ptr<SqliteJobStore> store_;
  std::unique_ptr<JobTable> jobs_;
  std::unique_ptr<WorkerRegistry> workers_;
  std::unique_ptr<RendezvousStore> rendezvous_;
  std::unique_ptr<GangSupervisor> supervisor_;
  // What the loop ticks; set and read on it.
  GangSupervisor* ticked_ = nullptr;
  EndedJobs ended_jobs_;
  // The same of blocking_loop_.
  JobTable* slowly_ticked_ = nullptr;
  std::unique_ptr<JobServiceImpl> job_service_;
  std::unique_ptr<WorkerServiceImpl> worker_service_;
  std::unique_ptr<CoordinatorMetrics> metrics_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<MetricsServer> metrics_server_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_COORDINATOR_H_
