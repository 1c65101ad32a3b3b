// WorkerRegistry: which workers there are, how to reach them, and which of
// their devices are taken.
//
// A worker has a lease: it is LOST when nothing was heard of it for as long. A
// broken stream is noted at once, and placement leaves the worker alone, but
// its ranks train on and it may come back until the lease ends. An incarnation
// is one life of the worker's process: another one doesn't hold its ranks.
//
// Threads: all functions may be called from any thread. Connections are called
// without the lock.
#ifndef LOCKSTEP_COORDINATOR_MEMBERSHIP_WORKER_REGISTRY_H_
#define LOCKSTEP_COORDINATOR_MEMBERSHIP_WORKER_REGISTRY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "coordinator/schedule/cluster_view.h"
#include "lockstep/v1/job_service.pb.h"
#include "lockstep/v1/worker_service.pb.h"

namespace lockstep {

// The coordinator's end of a worker's stream. Neither call blocks.
class WorkerConnection {
 public:
  virtual ~WorkerConnection() = default;
  virtual void Send(const v1::CoordinatorMessage& message) = 0;
  // Ends the stream with `status`; what isn't written yet is lost.
  virtual void Close(const absl::Status& status) = 0;
};

// One life of a worker.
struct WorkerLife {
  std::string name;
  std::string incarnation;
  friend bool operator==(const WorkerLife&, const WorkerLife&) = default;
};

class WorkerRegistry {
 public:
  struct Options {
    absl::Duration lease = absl::Seconds(10);
  };
  WorkerRegistry(Clock& clock, Options options);

  struct Admitted {
    // The life that this one replaces, which is lost with all it ran.
    std::optional<WorkerLife> replaced;
    // The stream that this one replaces, to be closed.
    std::shared_ptr<WorkerConnection> old_connection;
  };
  // INVALID_ARGUMENT: a hello that makes no sense. ALREADY_EXISTS: another
  // living process has this name.
  absl::StatusOr<Admitted> Admit(const v1::WorkerHello& hello,
                                 std::shared_ptr<WorkerConnection> connection);
  // A worker of an earlier life of the coordinator, which may come back until
  // `within` has passed.
  void Expect(const WorkerLife& life, absl::Duration within);

  // Something was heard. False if `connection` is no longer this worker's.
  bool Heard(const std::string& name, const WorkerConnection* connection);
  // Whether a message with this sequence is new; a repeat is not.
  bool IsNew(const std::string& name, int64_t sequence);
  // False if `connection` was not the worker's.
  bool Disconnect(const std::string& name, const WorkerConnection* connection);
  // Workers whose lease has just ended.
  std::vector<WorkerLife> Expire();
  // For a time in which nobody listened: leases end so much later, and broken
  // streams count as younger.
  void Extend(absl::Duration by);

  // False if that life of the worker is not connected now.
  bool Send(const WorkerLife& life, const v1::CoordinatorMessage& message);
  std::shared_ptr<WorkerConnection> ConnectionOf(const WorkerLife& life) const;
  // How long ago its stream broke; nothing while it is connected.
  // InfiniteDuration if that life is over.
  std::optional<absl::Duration> DisconnectedFor(const WorkerLife& life) const;

  // Devices that `job`'s rank holds until they are released.
  void Hold(const WorkerLife& life, const std::string& device,
            const v1::GangId& gang, int64_t rank);
  void Release(const v1::GangId& gang, int64_t rank);
  void ReleaseGang(const v1::GangId& gang);
  // Gangs that hold devices of this worker.
  std::vector<v1::GangId> HoldersOn(const WorkerLife& life) const;

  // Workers that take gangs.
  ClusterView View() const;
  // All that are known, LOST ones too.
  std::vector<v1::WorkerInfo> Infos() const;
  std::map<std::string, int64_t> CountByState() const;

 private:
  struct Holder {
    v1::GangId gang;
    int64_t rank = 0;
  };
  struct Worker {
    v1::WorkerHello hello;
    std::shared_ptr<WorkerConnection> connection;  // null: disconnected
    bool lost = false;
    absl::Duration lease_end;
    absl::Duration disconnected_at;
    absl::Time last_heard = absl::UnixEpoch();
    int64_t last_sequence = 0;
    // By device.
    std::map<std::string, Holder> holders;
  };
  static const char* StateWord(const Worker& worker);
  const Worker* FindLife(const WorkerLife& life) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock& clock_;
  const Options options_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Worker> workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_MEMBERSHIP_WORKER_REGISTRY_H_
