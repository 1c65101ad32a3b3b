// GangTable: the gangs that this worker holds, from reservation to the last
// rank's end. It decides; what it decides on comes in by its functions, and
// goes out by a GangTable::World.
//
//   Prepare  reserves devices, all or none, and answers GangPrepared
//   Commit   starts the ranks, and sends RankStarted for each
//   Stop     ends them: SIGTERM, a grace time, SIGKILL
//   Tick     does what time brings: SIGKILL, hangs, reservations that expire
//
// When one rank fails, the gang's others here are stopped at once. RankExited
// is sent for each rank when its process has ended and all it had said has
// been passed on.
//
// Not thread-safe: everything happens on one thread, that of the worker's
// SerialLoop, which also lives as long as the ranks (RankProcess).
#ifndef LOCKSTEP_WORKER_AGENT_GANG_TABLE_H_
#define LOCKSTEP_WORKER_AGENT_GANG_TABLE_H_

#include <cstdint>
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
#include "lockstep/v1/worker_service.pb.h"
#include "worker/agent/gang_record.h"

namespace lockstep {

class GangTable {
 public:
  // What the table acts on.
  class World {
   public:
    virtual ~World() = default;
    // Starts a rank's process; its end comes back by OnExit(token, ...).
    virtual absl::StatusOr<std::unique_ptr<RankHandle>> StartRank(
        const v1::RankAssignment& assignment, const std::string& token) = 0;
    // Sends to the coordinator, again and again until it is acknowledged.
    virtual void Send(v1::WorkerMessage message) = 0;
    // Processes that the OOM killer has killed so far.
    virtual int64_t OomKills() = 0;
  };

  struct Options {
    std::string worker;
    std::vector<v1::DeviceInfo> devices;
    int64_t cores = 1;
    // Compute threads of a rank; absent: cores / devices, at least 1.
    std::optional<int64_t> threads;
    std::string job_root;
    std::string data_root;
    std::string data_address;
    Clock* clock = nullptr;              // must outlive the table
    World* world = nullptr;              // must outlive the table
    MetricsRegistry* metrics = nullptr;  // must outlive the table
  };

  explicit GangTable(Options options);
  GangTable(const GangTable&) = delete;
  GangTable& operator=(const GangTable&) = delete;

  // From the coordinator.
  void Prepare(const v1::PrepareGang& prepare);
  void Commit(const v1::CommitGang& commit);
  void Stop(const v1::StopGang& stop);
  void CheckpointCommitted(const v1::CheckpointCommitted& committed);
  // Ends gangs of which the coordinator says that a newer one exists.
  void KillStale(const v1::Welcome& welcome);

  // From the ranks. PERMISSION_DENIED: no rank here has this token.
  absl::StatusOr<v1::RankAssignment> Assignment(const std::string& token) const;
  absl::Status OpenSession(const std::string& token,
                           std::shared_ptr<ControlQueue> control);
  void OnRankMessage(const std::string& token, const v1::RankMessage& message);
  void CloseSession(const std::string& token);

  // From the world.
  void OnExit(const std::string& token, int wait_status,
              const std::string& last_line);
  void Tick();

  // Takes no gang from now on and stops all ranks, with `reason` as their
  // cause lost_worker.
  void ShutDown(const std::string& reason, absl::Duration grace);

  // Forgets all gangs without a word; ranks that still run are killed, and
  // waited for.
  void Abandon() { gangs_.clear(); }

  bool empty() const { return gangs_.empty(); }
  std::vector<v1::WorkerHello::RunningRank> RunningRanks() const;
  v1::Heartbeat MakeHeartbeat() const;
  // Sets the gauges of devices and ranks.
  void UpdateMetrics() const;

 private:
  using Gangs = std::map<GangKey, GangRecord>;
  struct Found {
    GangRecord* gang = nullptr;
    RankRecord* rank = nullptr;
  };

  absl::Status Reserve(const v1::PrepareGang& prepare);
  v1::RankAssignment Complete(const v1::RankAssignment& assignment,
                              const std::string& device) const;
  std::optional<Found> Find(const std::string& token);
  void Answer(const GangKey& key, const absl::Status& status);
  void Start(RankRecord& rank);
  void Forward(const RankRecord& rank, const v1::RankReport& report);
  void StopGangRanks(GangRecord& gang, const std::string& reason,
                     absl::Duration grace, const RankRecord* except);
  void StopRank(RankRecord& rank, const std::string& reason,
                absl::Duration grace);
  void AbortPeers(GangRecord& gang, const RankRecord& failed,
                  const std::string& what);
  void KillOverdue(RankRecord& rank);
  void FindHang(GangRecord& gang);
  void ReportIfOver(GangRecord& gang, RankRecord& rank);
  void Report(GangRecord& gang, RankRecord& rank);
  void DropEnded();

  const Options options_;
  bool shutting_down_ = false;
  Gangs gangs_;
  // Newest generation seen of each job with a gang here.
  std::map<std::string, int64_t> newest_generation_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_GANG_TABLE_H_
