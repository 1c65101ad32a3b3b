// GangSupervisor: starts gangs, follows them and ends them: reservation,
// commit, reports of ranks, checkpoint commits, failures, lost workers,
// cancelling, and adoption after the coordinator was started again.
//
// It lives on one thread (SerialLoop): every function must be called there, and
// none blocks. It never holds a lock across a call to a worker.
//
// The source is split by what happens: gang_supervisor.cc (workers come, go and
// speak), gang_starting.cc (queue to commit), gang_reports.cc (what ranks
// report), gang_ending.cc (failures, cancelling, the end).
#ifndef LOCKSTEP_COORDINATOR_LAUNCH_GANG_SUPERVISOR_H_
#define LOCKSTEP_COORDINATOR_LAUNCH_GANG_SUPERVISOR_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/metrics/registry.h"
#include "coordinator/jobs/job_table.h"
#include "coordinator/launch/gang.h"
#include "coordinator/launch/rendezvous_store.h"
#include "coordinator/membership/worker_registry.h"
#include "lockstep/v1/worker_service.pb.h"

namespace lockstep {

class GangSupervisor {
 public:
  struct Options {
    // How often workers are asked for heartbeats.
    absl::Duration heartbeat_interval = absl::Seconds(1);
    // Workers must answer a reservation within.
    absl::Duration prepare_timeout = absl::Seconds(10);
    // All ranks must have been started after a commit within.
    absl::Duration start_timeout = absl::Seconds(60);
    // After a refused reservation the job waits for; twice as long after each
    // further one, up to the second.
    absl::Duration retry_interval = absl::Seconds(1);
    absl::Duration most_retry_interval = absl::Seconds(30);
    // Workers of an earlier life of the coordinator must be back within.
    absl::Duration adoption_window = absl::Seconds(30);
    // Time between SIGTERM and SIGKILL: when a user cancels, and when another
    // rank has failed.
    absl::Duration cancel_grace = absl::Seconds(5);
    absl::Duration failure_grace = absl::Seconds(2);
    // Ranks that aren't reported gone so long after the grace are given up.
    absl::Duration drain_timeout = absl::Seconds(10);
    // In a gang that is failing anyway, a worker without connection is taken
    // for lost after.
    absl::Duration failing_worker_grace = absl::Seconds(3);
    // A rank that a reconnected worker doesn't list must be reported within.
    absl::Duration missing_rank_grace = absl::Seconds(5);
    // Ticks further apart than that tell of a pause of this process (SIGSTOP, a
    // suspended host): nothing was heard in it, so no deadline counts it.
    absl::Duration longest_tick_gap = absl::Seconds(2);
    std::string version;
  };
  // The rest of the coordinator.
  struct Deps {
    JobTable& jobs;
    WorkerRegistry& workers;
    RendezvousStore& rendezvous;
    Clock& clock;
    MetricsRegistry& metrics;
    // Runs a closure on the supervisor's thread, soon; from any thread.
    std::function<void(std::function<void()>)> post;
    // Runs what may block, deleting files say, elsewhere.
    std::function<void(std::function<void()>)> post_blocking;
  };

  GangSupervisor(Deps deps, Options options);

  // Takes up the gangs that an earlier life of the coordinator left running.
  void Recover(const std::vector<RendezvousRecord>& rendezvous);

  // ---- Workers.
  // The answer to a hello; the connection may be used from then on.
  absl::StatusOr<v1::Welcome> OnHello(
      const v1::WorkerHello& hello,
      std::shared_ptr<WorkerConnection> connection);
  void OnMessage(const WorkerLife& life,
                 const std::shared_ptr<WorkerConnection>& connection,
                 const v1::WorkerMessage& message);
  void OnDisconnect(const WorkerLife& life, const WorkerConnection* connection);

  // ---- Clients.
  // There may be something new to start.
  void OnJobAdded() { queue_changed_ = true; }
  // Ends a job; one that has ended is left as it is.
  absl::Status Cancel(const std::string& job, const std::string& reason);

  // The coordinator stops: streams that end from now on are its own doing, and
  // nothing is started any more.
  void OnShutdown() { shutting_down_ = true; }

  // Deadlines and the queue. Call it after every batch of the above, and now
  // and then.
  void Tick();

 private:
  // ---- gang_supervisor.cc
  void AdoptOrRefuse(const v1::WorkerHello& hello, const WorkerLife& life,
                     v1::Welcome& welcome);
  void OnWorkerLost(const WorkerLife& life, const std::string& how);
  // Moves all deadlines by a pause in which nobody could be heard.
  void MakeUpFor(absl::Duration pause);
  // Runs `closure` here once all changes so far are durable.
  void AfterStored(std::function<void()> closure);
  void SendTo(const WorkerLife& life, const v1::CoordinatorMessage& message);
  void SendToAll(const Gang& gang, const v1::CoordinatorMessage& message);
  // The gang, if it is the job's newest and committed.
  Gang* FindCommitted(const v1::GangId& id);
  absl::Duration Uptime() const { return deps_.clock.Uptime(); }

  // ---- gang_starting.cc
  void RunQueue();
  void Begin(const JobRecord& job, v1::ResolvedLayout layout,
             Placement placement);
  void Prepare(const v1::GangId& id);
  void OnReservation(Gang& gang);
  void CommitReservation(Gang& gang);
  void DropReservation(std::string job, const std::string& reason);
  void HoldBack(const std::string& job, const std::string& reason);
  void OnRankStarted(const v1::RankStarted& started);

  // ---- gang_reports.cc
  void OnHeartbeat(const v1::Heartbeat& heartbeat);
  void OnRankReport(int64_t sequence, const v1::RankReport& report);
  void CountStep(Gang& gang, const v1::StepReport& step);
  void OnCheckpoint(Gang& gang, const v1::CheckpointPrepared& prepared);
  void OnCheckpointStored(const CheckpointRecord& checkpoint);

  // ---- gang_ending.cc
  void OnRankExited(const WorkerLife& life, const v1::RankExited& exited);
  void NoteFirstCause(Gang& gang);
  void Stop(Gang& gang, const std::string& reason, absl::Duration grace);
  void SendStop(const Gang& gang, const WorkerLife& life,
                const std::string& reason, absl::Duration grace);
  void CheckDeadlines(Gang& gang);
  // Ends the gang if all its ranks are gone; it is no more when this is true.
  bool EndIfGone(Gang& gang);
  void End(Gang& gang);
  bool HasFinalCheckpoint(const Gang& gang) const;
  void CleanFolder(const std::string& job);

  const Deps deps_;
  const Options options_;
  // By job.
  std::map<std::string, Gang> gangs_;
  // Jobs that were refused by a worker, and why.
  struct HeldBack {
    // Not tried again before; unset once it may be.
    std::optional<absl::Duration> until;
    std::string reason;
    // Refusals in a row.
    int refusals = 0;
  };
  std::map<std::string, HeldBack> held_back_;
  bool queue_changed_ = true;
  bool shutting_down_ = false;
  // Clock::Uptime of the last tick.
  absl::Duration last_tick_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_LAUNCH_GANG_SUPERVISOR_H_
