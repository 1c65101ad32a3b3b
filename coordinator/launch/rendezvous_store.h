// RendezvousStore: where the ranks of a gang find each other. Keys belong to a
// (job, generation) and are guarded by its secret; only the newest generation
// of a job has a rendezvous.
//
// Keys also go to the job store, so that ranks which are meeting don't notice
// that the coordinator was started again.
//
// Threads: all functions may be called from any thread. Get blocks its caller.
#ifndef LOCKSTEP_COORDINATOR_LAUNCH_RENDEZVOUS_STORE_H_
#define LOCKSTEP_COORDINATOR_LAUNCH_RENDEZVOUS_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "coordinator/store/job_store.h"
#include "lockstep/v1/worker_service.pb.h"

namespace lockstep {

class RendezvousStore {
 public:
  RendezvousStore(JobStore& store, Clock& clock);
  ~RendezvousStore();

  // Opens the meeting of a gang; that of an older generation ends.
  void Open(const v1::GangId& gang, const std::string& secret);
  // Puts a key back that an earlier life of the coordinator had.
  void Restore(const RendezvousRecord& record);
  // Ends it: whoever waits gets ABORTED.
  void Close(const v1::GangId& gang);
  // Ends all waits with UNAVAILABLE, for good: the coordinator stops.
  void Stop();

  // Keys of all meetings.
  int64_t key_count() const;

  // ABORTED: not the newest generation, or ended. PERMISSION_DENIED: wrong
  // secret. INVALID_ARGUMENT: too large. ALREADY_EXISTS: the key has another
  // value. RESOURCE_EXHAUSTED: too many keys.
  absl::Status Set(const v1::GangId& gang, const std::string& secret,
                   const std::string& key, const std::string& value);
  // Waits until all keys exist. DEADLINE_EXCEEDED names the first missing one
  // and counts the others; CANCELLED when `cancelled`, asked now and then, says
  // so; else as Set.
  absl::StatusOr<std::vector<std::string>> Get(
      const v1::GangId& gang, const std::string& secret,
      const std::vector<std::string>& keys, absl::Duration timeout,
      const std::function<bool()>& cancelled);

 private:
  struct Meeting {
    int64_t generation = 0;
    std::string secret;
    std::map<std::string, std::string> values;
    bool ended = false;
  };
  absl::StatusOr<std::shared_ptr<Meeting>> Find(const v1::GangId& gang,
                                                const std::string& secret)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  JobStore& store_;
  Clock& clock_;
  mutable absl::Mutex mutex_;
  // By job. A meeting's fields are guarded by mutex_ too.
  std::map<std::string, std::shared_ptr<Meeting>> meetings_
      ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_LAUNCH_RENDEZVOUS_STORE_H_
