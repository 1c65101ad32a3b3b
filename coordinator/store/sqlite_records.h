// Reads and writes the records of job_store.h as rows.
#ifndef LOCKSTEP_COORDINATOR_STORE_SQLITE_RECORDS_H_
#define LOCKSTEP_COORDINATOR_STORE_SQLITE_RECORDS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/job_store.h"
#include "coordinator/store/sqlite_database.h"

namespace lockstep {

// Statements for StoreChanges, prepared once. `database` must outlive it.
class SqliteChangeWriter {
 public:
  static absl::StatusOr<std::unique_ptr<SqliteChangeWriter>> Create(
      SqliteDatabase& database);

  // Within the caller's transaction. After an error that must be rolled back.
  absl::Status Apply(const StoreChange& change);

 private:
  struct Statements;
  explicit SqliteChangeWriter(std::unique_ptr<Statements> statements);

 public:
  ~SqliteChangeWriter();

 private:
  absl::Status PutJob(const JobRecord& job);
  absl::Status PutAttempt(const AttemptRecord& attempt);
  absl::Status PutCheckpoint(const CheckpointRecord& checkpoint);
  absl::Status AddTransition(const TransitionRecord& transition);
  absl::Status AddEvent(const v1::Event& event);
  absl::Status DeleteJob(const std::string& job);

  const std::unique_ptr<Statements> statements_;
};

absl::StatusOr<StoredState> ReadStoredState(SqliteDatabase& database);
absl::StatusOr<std::vector<v1::Event>> ReadEvents(SqliteDatabase& database,
                                                  const std::string& job,
                                                  int64_t limit);

// Whether `id` can be a job's, so that it may be used in paths.
bool IsJobId(std::string_view id);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_STORE_SQLITE_RECORDS_H_
