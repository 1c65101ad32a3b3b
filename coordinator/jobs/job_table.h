// JobTable: all jobs, in memory and in the store. Every change goes to both, in
// the same order, and to the job's history, where watchers see it.
//
//   ASSIGN_OR_RETURN(JobRecord job, table->Add(...));       // waits: durable
//   RETURN_IF_ERROR(table->StartAttempt(attempt));          // doesn't wait
//   table->store().WhenStored([...] { ... });
//
// Threads: all functions may be called from any thread. Those that change a
// running job are called by the gang supervisor's thread only, so that what it
// has read stays true until it writes.
// Errors: NOT_FOUND no such job; FAILED_PRECONDITION a transition that the
// table of job_state.h lacks, or a state that forbids the call.
#ifndef LOCKSTEP_COORDINATOR_JOBS_JOB_TABLE_H_
#define LOCKSTEP_COORDINATOR_JOBS_JOB_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/clock.h"
#include "coordinator/jobs/job_history.h"
#include "coordinator/jobs/job_state.h"
#include "coordinator/store/job_store.h"

namespace lockstep {

class JobTable {
 public:
  struct Options {
    // JOB_ROOT, absolute.
    std::string job_root;
    JobHistory::Options history;
    // Told of each change of state, with the table locked: must not call it.
    std::function<void(const JobRecord& job)> on_move;
    // Makes the suffixes of ids: so many random characters.
    std::function<std::string(int)> random_suffix;
  };

  // `state` is what `store` had; it and `clock` must outlive the table.
  static absl::StatusOr<std::unique_ptr<JobTable>> Load(JobStore& store,
                                                        StoredState state,
                                                        Clock& clock,
                                                        Options options);
  // Waits for submits and deletes on their way, which the store answers one
  // way or the other.
  ~JobTable();

  // ---- Reading.
  // Id of the job that a user means: an id, the name of a job (its newest), or
  // a unique prefix of an id. Jobs with an action come last.
  absl::StatusOr<std::string> Resolve(const std::string& name) const;
  absl::StatusOr<JobRecord> Get(const std::string& id) const;
  // In submit order.
  std::vector<JobRecord> List() const;
  std::vector<JobRecord> Pending() const;
  // With an attempt that has not ended.
  std::vector<JobRecord> Running() const;
  // How many jobs are in each state.
  std::map<JobState, int64_t> CountByState() const;
  // The job that an earlier submit with this request id made.
  std::optional<JobRecord> FindRequest(const std::string& request_id) const;

  std::vector<AttemptRecord> Attempts(const std::string& id) const;
  std::optional<AttemptRecord> NewestAttempt(const std::string& id) const;
  // Committed ones, newest first.
  std::vector<CheckpointRecord> Checkpoints(const std::string& id) const;
  // Of the newest attempt, by rank.
  std::vector<v1::MemoryReport> Memory(const std::string& id) const;
  absl::StatusOr<std::shared_ptr<JobHistory>> History(
      const std::string& id) const;
  // Gives what a full disk kept in memory another try. Blocks; call it now and
  // then.
  void WriteHistories();
  // As clients see it.
  absl::StatusOr<v1::JobInfo> Info(const std::string& id) const;
  v1::JobInfo ToInfo(const JobRecord& record) const;
  // JOB_ROOT/J.
  std::string JobFolder(const std::string& id) const;

  // ---- Submitting and deleting; these wait for the store.
  // Makes the id, the order and the times of `job`, and stores it as PENDING.
  // A request id seen before gives the job that it made. UNAVAILABLE: the
  // checkpoint that it starts from is no longer kept.
  absl::StatusOr<JobRecord> Add(JobRecord job, absl::Duration timeout);
  // Takes an ended job out of the store, then deletes its folder.
  // FAILED_PRECONDITION while it lives, or while a live job starts from one of
  // its checkpoints.
  absl::Status Delete(const std::string& id, absl::Duration timeout);
  // Ends what a crash left of deletions: removes the folders that carry a
  // deletion's mark and belong to no job. Blocks; call it once, after Load.
  void EndDeletions();

  // ---- Changing; these don't wait for the store.
  // Why a PENDING job waits. No news is no change.
  absl::Status SetReason(const std::string& id, const std::string& reason);
  // A generation that was never used before; nobody may see it before it is
  // stored.
  absl::StatusOr<int64_t> NextGeneration(const std::string& id);
  // PENDING to STARTING.
  absl::Status StartAttempt(const AttemptRecord& attempt,
                            const std::string& reason);
  // STARTING to RUNNING.
  absl::Status MarkRunning(const std::string& id, const std::string& reason);
  // A user's wish, carried out by the supervisor; lives through a restart.
  absl::Status RequestCancel(const std::string& id, const std::string& reason);
  // How `rank` of the attempt ended.
  absl::Status RecordRankExit(const AttemptRecord& attempt, int64_t rank);
  // The first failing rank and its cause, with the ends of ranks so far, while
  // the gang is torn down.
  absl::Status RecordFailure(const AttemptRecord& attempt);
  // The attempt's outcome, and the state that the job goes to with it.
  absl::Status EndAttempt(const AttemptRecord& attempt, JobState state,
                          const std::string& reason);
  // PENDING to FAILED or CANCELLED.
  absl::Status EndPending(const std::string& id, JobState state,
                          v1::Cause cause, const std::string& reason);
  absl::Status RecordFacts(const std::string& id, int64_t generation,
                           const v1::RunFacts& facts);
  absl::Status RecordMemory(const std::string& id, int64_t generation,
                            const v1::MemoryReport& report);
  absl::Status CommitCheckpoint(const CheckpointRecord& checkpoint);
  // Forgets all but the newest `keep` committed checkpoints, and those that a
  // live job starts from; returns what it forgot, for deleting once the store
  // has forgotten it too.
  std::vector<CheckpointRecord> ForgetOldCheckpoints(const std::string& id,
                                                     int64_t keep);
  void AddEvent(const std::string& id, const std::string& type,
                const std::string& message);

  JobStore& store() { return store_; }

 private:
  struct Entry {
    JobRecord record;
    std::map<int64_t, AttemptRecord> attempts;
    // By (generation, step).
    std::vector<CheckpointRecord> checkpoints;
    // By rank, of generation `memory_generation`.
    std::map<int64_t, v1::MemoryReport> memory;
    int64_t memory_generation = 0;
    // Opened when first asked for.
    mutable std::shared_ptr<JobHistory> history;
  };

  // A job on its way into the store; its fields are guarded by mutex_.
  struct Adding {
    std::string id;
    // Checkpoint that it starts from; empty: none.
    std::string start_checkpoint;
    bool done = false;
    absl::Status status;
  };

  JobTable(JobStore& store, Clock& clock, Options options);
  absl::StatusOr<Entry*> Find(const std::string& id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<const Entry*> Find(const std::string& id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<JobHistory>> HistoryOf(
      const Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::JobInfo InfoOf(const Entry& entry) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Changes the state, with a transition and an event in `change`.
  absl::Status Move(Entry& entry, JobState to, const std::string& reason,
                    StoreChange& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::Event MakeEvent(const Entry& entry, const std::string& type,
                      const std::string& message) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hands `change` to the store and tells watchers of its events and, if it has
  // one, of the job.
  void Commit(Entry& entry, StoreChange change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string MakeId(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the checkpoint that a new job starts from is still there.
  absl::Status CheckStart(const JobRecord& job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishAdd(const JobRecord& record, const v1::Event& event,
                 const std::shared_ptr<Adding>& adding,
                 const absl::Status& status);
  std::string DeletionMark(const std::string& id) const;
  bool IsUsedByLiveJob(const CheckpointRecord& checkpoint) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<JobRecord> ListIf(
      const std::function<bool(const Entry&)>& wanted) const;

  JobStore& store_;
  Clock& clock_;
  const Options options_;

  mutable absl::Mutex mutex_;
  std::map<std::string, Entry> jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> by_request_ ABSL_GUARDED_BY(mutex_);
  // By request id.
  std::map<std::string, std::shared_ptr<Adding>> adding_
      ABSL_GUARDED_BY(mutex_);
  // Ids on their way out of the store.
  std::set<std::string> deleting_ ABSL_GUARDED_BY(mutex_);
  int64_t next_order_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_JOBS_JOB_TABLE_H_
