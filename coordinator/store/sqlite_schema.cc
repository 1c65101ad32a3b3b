#include "coordinator/store/sqlite_schema.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// "LKST": tells our files from other programs' databases.
constexpr int64_t kApplicationId = 0x4C4B5354;
constexpr int64_t kSchemaVersion = 1;

struct Table {
  const char* name;
  const char* sql;
};

constexpr Table kTables[] = {
    {"jobs",
     "CREATE TABLE jobs (id TEXT PRIMARY KEY, request_id TEXT NOT NULL UNIQUE, "
     "submit_order INTEGER NOT NULL UNIQUE, spec BLOB NOT NULL, "
     "state INTEGER NOT NULL, reason TEXT NOT NULL, cause INTEGER NOT NULL, "
     "generation INTEGER NOT NULL, submitted_us INTEGER NOT NULL, "
     "started_us INTEGER, ended_us INTEGER, step INTEGER NOT NULL, "
     "steps INTEGER NOT NULL, devices INTEGER NOT NULL, "
     "devices_at_most INTEGER NOT NULL, resume_job TEXT NOT NULL, "
     "resume_checkpoint TEXT NOT NULL, cancel_reason TEXT NOT NULL) "
     "WITHOUT ROWID"},
    {"attempts",
     "CREATE TABLE attempts (job TEXT NOT NULL, generation INTEGER NOT NULL, "
     "outcome INTEGER NOT NULL, cause INTEGER NOT NULL, first_rank INTEGER, "
     "worker TEXT NOT NULL, message TEXT NOT NULL, "
     "started_us INTEGER NOT NULL, ended_us INTEGER, layout BLOB NOT NULL, "
     "facts BLOB NOT NULL, secret TEXT NOT NULL, "
     "PRIMARY KEY (job, generation)) WITHOUT ROWID"},
    {"ranks",
     "CREATE TABLE ranks (job TEXT NOT NULL, generation INTEGER NOT NULL, "
     "rank INTEGER NOT NULL, worker TEXT NOT NULL, "
     "incarnation TEXT NOT NULL, device TEXT NOT NULL, "
     "memory_limit_bytes INTEGER NOT NULL, exited INTEGER NOT NULL, "
     "PRIMARY KEY (job, generation, rank)) WITHOUT ROWID"},
    {"transitions",
     "CREATE TABLE transitions (id INTEGER PRIMARY KEY, job TEXT NOT NULL, "
     "generation INTEGER NOT NULL, from_state INTEGER NOT NULL, "
     "to_state INTEGER NOT NULL, reason TEXT NOT NULL, "
     "time_us INTEGER NOT NULL)"},
    {"events",
     "CREATE TABLE events (id INTEGER PRIMARY KEY, job TEXT NOT NULL, "
     "generation INTEGER NOT NULL, type TEXT NOT NULL, message TEXT NOT NULL, "
     "time_us INTEGER NOT NULL)"},
    {"checkpoints",
     "CREATE TABLE checkpoints (job TEXT NOT NULL, "
     "generation INTEGER NOT NULL, step INTEGER NOT NULL, path TEXT NOT NULL, "
     "manifest_hash TEXT NOT NULL, bytes INTEGER NOT NULL, "
     "committed_us INTEGER NOT NULL, "
     "PRIMARY KEY (job, generation, step)) WITHOUT ROWID"},
    {"memory",
     "CREATE TABLE memory (job TEXT NOT NULL, generation INTEGER NOT NULL, "
     "rank INTEGER NOT NULL, report BLOB NOT NULL, "
     "PRIMARY KEY (job, generation, rank)) WITHOUT ROWID"},
    {"rendezvous",
     "CREATE TABLE rendezvous (job TEXT NOT NULL, "
     "generation INTEGER NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, "
     "PRIMARY KEY (job, generation, key)) WITHOUT ROWID"},
    {"events_by_job", "CREATE INDEX events_by_job ON events (job)"},
    {"transitions_by_job",
     "CREATE INDEX transitions_by_job ON transitions (job)"},
};

absl::Status CreateTables(SqliteDatabase& database) {
  std::string sql = "BEGIN IMMEDIATE;";
  for (const Table& table : kTables) absl::StrAppend(&sql, table.sql, ";");
  absl::StrAppend(&sql, "PRAGMA application_id = ", kApplicationId,
                  "; PRAGMA user_version = ", kSchemaVersion, "; COMMIT;");
  return database.Execute(sql);
}

absl::Status CheckTables(SqliteDatabase& database) {
  std::map<std::string, std::string> wanted;
  for (const Table& table : kTables) wanted.emplace(table.name, table.sql);
  ASSIGN_OR_RETURN(
      SqliteStatement statement,
      database.Prepare(
          "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) break;
    ASSIGN_OR_RETURN(const std::string name, statement.Text(0));
    ASSIGN_OR_RETURN(const std::string sql, statement.Text(1));
    const auto found = wanted.find(name);
    if (found == wanted.end() || found->second != sql) {
      return absl::DataLossError(absl::StrCat(
          database.path(), ": its ", name,
          " is not that of a job store of version ", kSchemaVersion));
    }
    wanted.erase(found);
  }
  if (!wanted.empty()) {
    return absl::DataLossError(
        absl::StrCat(database.path(), ": has no ", wanted.begin()->first));
  }
  return absl::OkStatus();
}

absl::Status CheckWhole(SqliteDatabase& database) {
  ASSIGN_OR_RETURN(const std::string verdict,
                   database.QueryText("PRAGMA quick_check(1)"));
  if (verdict == "ok") return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(database.path(), ": is damaged (", verdict,
                   "): move it away or restore it from a copy"));
}

}  // namespace

absl::Status PrepareSchema(SqliteDatabase& database) {
  // In exclusive mode the first access takes the lock and keeps it until the
  // database is closed or the process is gone, however it goes.
  RETURN_IF_ERROR(database.Execute("PRAGMA locking_mode = EXCLUSIVE"));
  RETURN_IF_ERROR(database.Execute("PRAGMA cell_size_check = ON"));
  ASSIGN_OR_RETURN(const int64_t application,
                   database.QueryInt("PRAGMA application_id"));
  ASSIGN_OR_RETURN(const int64_t version,
                   database.QueryInt("PRAGMA user_version"));
  ASSIGN_OR_RETURN(const int64_t objects,
                   database.QueryInt("SELECT count(*) FROM sqlite_master"));
  const bool fresh = application == 0 && version == 0 && objects == 0;
  if (!fresh && application != kApplicationId) {
    return absl::DataLossError(
        absl::StrCat(database.path(), ": is some other program's database"));
  }
  if (!fresh && version != kSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(database.path(), ": has schema version ", version,
                     ", this coordinator knows ", kSchemaVersion));
  }
  ASSIGN_OR_RETURN(const std::string mode,
                   database.QueryText("PRAGMA journal_mode = WAL"));
  if (mode != "wal") {
    return absl::FailedPreconditionError(absl::StrCat(
        database.path(), ": no write-ahead log here, but mode ", mode));
  }
  RETURN_IF_ERROR(database.Execute("PRAGMA synchronous = FULL"));
  // Takes the lock now, in place of at the first submit.
  RETURN_IF_ERROR(database.Execute("BEGIN EXCLUSIVE; COMMIT"));
  if (fresh) return CreateTables(database);
  RETURN_IF_ERROR(CheckTables(database));
  return CheckWhole(database);
}

}  // namespace lockstep
