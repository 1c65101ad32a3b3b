// SqliteJobStore: a JobStore in one SQLite file (docs/formats/job_store.md).
//
// One thread writes: it takes all changes that wait, applies them in one
// transaction and commits once (group commit), with the write-ahead log synced
// at each commit. The file is locked for as long as the store lives.
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_COORDINATOR_STORE_SQLITE_JOB_STORE_H_
#define LOCKSTEP_COORDINATOR_STORE_SQLITE_JOB_STORE_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/store/job_store.h"
#include "coordinator/store/sqlite_database.h"
#include "coordinator/store/sqlite_records.h"

namespace lockstep {

class SqliteJobStore : public JobStore {
 public:
  struct Options {
    // The file; its folder is made if need be.
    std::string path;
    // Time between tries while writes fail.
    absl::Duration retry_interval = absl::Seconds(1);
    // Told how long each commit took, on the writer's thread. May be empty.
    std::function<void(absl::Duration)> on_commit;
  };

  // FAILED_PRECONDITION: another coordinator has it, no permission, or a newer
  // schema. DATA_LOSS: damaged, or no job store.
  static absl::StatusOr<std::unique_ptr<SqliteJobStore>> Open(Options options);
  // Stores what is queued, if it can, first.
  ~SqliteJobStore() override;

  absl::StatusOr<StoredState> Load() override;
  void Enqueue(StoreChange change) override;
  void Write(StoreChange change,
             std::function<void(absl::Status)> done) override;
  void WhenStored(std::function<void()> done) override;
  absl::Status WaitUntilStored(absl::Duration timeout) override;
  absl::StatusOr<std::vector<v1::Event>> Events(const std::string& job,
                                                int64_t limit) override;
  absl::Status health() const override;
  std::string description() const override;

 private:
  // A change, or a call to make when all before it is durable, or both.
  struct Entry {
    StoreChange change;
    bool has_change = false;
    // Set: may be refused, and is told how it went.
    std::function<void(absl::Status)> answer;
    std::function<void()> stored;
  };

  SqliteJobStore(Options options, std::unique_ptr<SqliteDatabase> database,
                 std::unique_ptr<SqliteChangeWriter> writer);
  void Push(Entry entry);
  void Work();
  // Commits as much of `batch` as it can, from the front; what is done or
  // refused is taken out.
  absl::Status Commit(std::deque<Entry>& batch);
  absl::Status CommitTogether(const std::deque<Entry>& batch, size_t count);

  const Options options_;
  // Held while the database is in use; after queue_mutex_ never before.
  absl::Mutex database_mutex_;
  const std::unique_ptr<SqliteDatabase> database_;
  const std::unique_ptr<SqliteChangeWriter> writer_
      ABSL_PT_GUARDED_BY(database_mutex_);

  mutable absl::Mutex queue_mutex_;
  std::deque<Entry> queue_ ABSL_GUARDED_BY(queue_mutex_);
  absl::Status health_ ABSL_GUARDED_BY(queue_mutex_);
  bool stopping_ ABSL_GUARDED_BY(queue_mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_STORE_SQLITE_JOB_STORE_H_
