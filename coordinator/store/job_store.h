// JobStore: what the coordinator may not forget. Jobs, attempts, transitions,
// events and checkpoint commits live here; step history and logs are files
// beside it (docs/formats/job_store.md, docs/formats/step_history.md).
//
// All writes are StoreChanges: each is applied whole or not at all, and they
// are applied in the order in which they were handed over.
//
//   store->Enqueue(change);                 // has happened; never waits
//   store->WhenStored([...] { Ack(); });    // once all of the above is durable
//   store->Write(change, [...](absl::Status s) { ... });  // or be refused
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_COORDINATOR_STORE_JOB_STORE_H_
#define LOCKSTEP_COORDINATOR_STORE_JOB_STORE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/v1/job_service.pb.h"
#include "lockstep/v1/plan.pb.h"
#include "lockstep/v1/worker_service.pb.h"

namespace lockstep {

struct JobRecord {
  std::string id;
  // Of the submission that made it; unique.
  std::string request_id;
  // Rises with each submit: the queue's order.
  int64_t submit_order = 0;
  // All defaults filled in.
  v1::JobSpec spec;
  v1::JobState state = v1::JOB_STATE_PENDING;
  std::string reason;
  // Of the last attempt's end; unspecified while there is none.
  v1::Cause cause = v1::CAUSE_UNSPECIFIED;
  // Newest generation ever used, whether or not its ranks were started.
  int64_t generation = 0;
  absl::Time submitted = absl::UnixEpoch();
  std::optional<absl::Time> started;
  std::optional<absl::Time> ended;
  // As of the last transition; the history knows better while it runs.
  int64_t step = 0;
  // Optimizer steps in all; 0 until known.
  int64_t steps = 0;
  // Devices that it holds or asks for.
  int64_t devices = 0;
  // From `run`: use at most `devices`, fewer if the layout wants fewer.
  bool devices_at_most = false;
  // Checkpoint directory to start from, and the job that wrote it; or empty.
  std::string resume_job;
  std::string resume_checkpoint;
  // Why a user wants it cancelled; empty if nobody does.
  std::string cancel_reason;
};

// Where a rank runs.
struct RankRecord {
  std::string worker;
  // Of the worker's process: another one does not hold this rank.
  std::string incarnation;
  std::string device;
  // Counted bytes that it may use; 0 is no limit.
  uint64_t memory_limit_bytes = 0;
  bool exited = false;
  // It exited, but not well.
  bool ended_badly = false;
};

// One attempt of a job; its ranks in rank order.
struct AttemptRecord {
  std::string job;
  int64_t generation = 0;
  v1::Outcome outcome = v1::OUTCOME_UNSPECIFIED;
  v1::Cause cause = v1::CAUSE_UNSPECIFIED;
  std::optional<int64_t> first_rank;
  std::string worker;
  std::string message;
  absl::Time started = absl::UnixEpoch();
  std::optional<absl::Time> ended;
  v1::ResolvedLayout layout;
  v1::RunFacts facts;
  // Of its rendezvous.
  std::string secret;
  std::vector<RankRecord> ranks;
};

struct TransitionRecord {
  std::string job;
  int64_t generation = 0;
  v1::JobState from = v1::JOB_STATE_UNSPECIFIED;
  v1::JobState to = v1::JOB_STATE_UNSPECIFIED;
  std::string reason;
  absl::Time time = absl::UnixEpoch();
};

// A checkpoint that counts.
struct CheckpointRecord {
  std::string job;
  int64_t generation = 0;
  int64_t step = 0;
  std::string path;
  std::string manifest_hash;
  uint64_t bytes = 0;
  absl::Time committed = absl::UnixEpoch();
};

// Newest memory report of one rank of an attempt.
struct MemoryRecord {
  std::string job;
  int64_t generation = 0;
  v1::MemoryReport report;
};

// A key of a gang's rendezvous, so that ranks which are meeting don't notice
// that the coordinator was started again.
struct RendezvousRecord {
  std::string job;
  int64_t generation = 0;
  std::string key;
  std::string value;
};

struct StoreChange {
  // Inserted, or replaced by key.
  std::vector<JobRecord> jobs;
  std::vector<AttemptRecord> attempts;
  std::vector<CheckpointRecord> checkpoints;
  std::vector<MemoryRecord> memory;
  std::vector<RendezvousRecord> rendezvous;
  // Appended.
  std::vector<TransitionRecord> transitions;
  std::vector<v1::Event> events;
  // Taken out; of a checkpoint only the key counts.
  std::vector<CheckpointRecord> forgotten_checkpoints;
  std::vector<v1::GangId> forgotten_rendezvous;
  // With all that belongs to them.
  std::vector<std::string> deleted_jobs;
};

// All but events and transitions, which are read on demand.
struct StoredState {
  std::vector<JobRecord> jobs;          // by submit order
  std::vector<AttemptRecord> attempts;  // by job and generation
  std::vector<CheckpointRecord> checkpoints;
  std::vector<MemoryRecord> memory;
  std::vector<RendezvousRecord> rendezvous;
};

class JobStore {
 public:
  virtual ~JobStore() = default;

  // DATA_LOSS names the row that can't be understood.
  virtual absl::StatusOr<StoredState> Load() = 0;

  // Queues a change that has already happened. It is tried again until it is
  // stored (a full disk, say), so changes behind it wait too.
  virtual void Enqueue(StoreChange change) = 0;

  // Stores a change that happens only if this succeeds; `done`, on the store's
  // thread, hears how it went and must not block. Not tried again:
  //   RESOURCE_EXHAUSTED: the disk is full. ALREADY_EXISTS: a unique key, the
  //   request id say, is taken.
  virtual void Write(StoreChange change,
                     std::function<void(absl::Status)> done) = 0;

  // Calls `done` once every change queued before this call is durable, on the
  // store's thread. `done` must not block; calls come in order. Not called once
  // the store goes.
  virtual void WhenStored(std::function<void()> done) = 0;

  // Waits for the same. After `timeout` the store's trouble, RESOURCE_EXHAUSTED
  // on a full disk say, or DEADLINE_EXCEEDED if it has none but time.
  virtual absl::Status WaitUntilStored(absl::Duration timeout) = 0;

  // The newest `limit` events, oldest first, of one job or (empty) of all.
  virtual absl::StatusOr<std::vector<v1::Event>> Events(const std::string& job,
                                                        int64_t limit) = 0;

  // Not OK while writes fail.
  virtual absl::Status health() const = 0;
  // For people: "sqlite:/var/lib/lockstep/state.db".
  virtual std::string description() const = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_STORE_JOB_STORE_H_
