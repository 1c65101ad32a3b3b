#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "coordinator/store/sqlite_records.h"
#include "google/protobuf/util/time_util.h"

namespace lockstep {
namespace {

// Name (63) and suffix; a file name has at most 255 bytes.
constexpr size_t kMostJobIdBytes = 128;

absl::Status Broken(const SqliteDatabase& database, const std::string& row,
                    const std::string& what) {
  return absl::DataLossError(
      absl::StrCat(database.path(), ": ", row, " has a bad ", what));
}

absl::StatusOr<std::optional<absl::Time>> OptionalTime(
    const SqliteStatement& row, int column) {
  if (row.IsNull(column)) return std::optional<absl::Time>();
  ASSIGN_OR_RETURN(const int64_t micros, row.Int(column));
  return std::optional<absl::Time>(absl::FromUnixMicros(micros));
}

absl::StatusOr<absl::Time> TimeOf(const SqliteStatement& row, int column) {
  ASSIGN_OR_RETURN(const int64_t micros, row.Int(column));
  return absl::FromUnixMicros(micros);
}

// The steps below take one row each; `name` is for messages.
absl::StatusOr<JobRecord> ReadJob(const SqliteDatabase& database,
                                  const SqliteStatement& row) {
  JobRecord job;
  ASSIGN_OR_RETURN(job.id, row.Text(0));
  if (!IsJobId(job.id)) {
    return Broken(database, "a job",
                  absl::StrCat("id \"", absl::CHexEscape(job.id), "\""));
  }
  const std::string name = absl::StrCat("job ", job.id);
  ASSIGN_OR_RETURN(job.request_id, row.Text(1));
  ASSIGN_OR_RETURN(job.submit_order, row.Int(2));
  ASSIGN_OR_RETURN(const std::string spec, row.Blob(3));
  if (!job.spec.ParseFromString(spec)) return Broken(database, name, "spec");
  ASSIGN_OR_RETURN(const int64_t state, row.Int(4));
  if (state < v1::JobState_MIN + 1 || state > v1::JobState_MAX) {
    return Broken(database, name, absl::StrCat("state ", state));
  }
  job.state = static_cast<v1::JobState>(state);
  ASSIGN_OR_RETURN(job.reason, row.Text(5));
  ASSIGN_OR_RETURN(const int64_t cause, row.Int(6));
  if (cause < v1::Cause_MIN || cause > v1::Cause_MAX) {
    return Broken(database, name, absl::StrCat("cause ", cause));
  }
  job.cause = static_cast<v1::Cause>(cause);
  ASSIGN_OR_RETURN(job.generation, row.Int(7));
  ASSIGN_OR_RETURN(job.submitted, TimeOf(row, 8));
  ASSIGN_OR_RETURN(job.started, OptionalTime(row, 9));
  ASSIGN_OR_RETURN(job.ended, OptionalTime(row, 10));
  ASSIGN_OR_RETURN(job.step, row.Int(11));
  ASSIGN_OR_RETURN(job.steps, row.Int(12));
  ASSIGN_OR_RETURN(job.devices, row.Int(13));
  ASSIGN_OR_RETURN(const int64_t at_most, row.Int(14));
  job.devices_at_most = at_most != 0;
  ASSIGN_OR_RETURN(job.resume_job, row.Text(15));
  ASSIGN_OR_RETURN(job.resume_checkpoint, row.Text(16));
  ASSIGN_OR_RETURN(job.cancel_reason, row.Text(17));
  return job;
}

absl::StatusOr<AttemptRecord> ReadAttempt(const SqliteDatabase& database,
                                          const SqliteStatement& row) {
  AttemptRecord attempt;
  ASSIGN_OR_RETURN(attempt.job, row.Text(0));
  ASSIGN_OR_RETURN(attempt.generation, row.Int(1));
  const std::string name =
      absl::StrCat("attempt ", attempt.generation, " of job ", attempt.job);
  ASSIGN_OR_RETURN(const int64_t outcome, row.Int(2));
  if (outcome < v1::Outcome_MIN || outcome > v1::Outcome_MAX) {
    return Broken(database, name, absl::StrCat("outcome ", outcome));
  }
  attempt.outcome = static_cast<v1::Outcome>(outcome);
  ASSIGN_OR_RETURN(const int64_t cause, row.Int(3));
  if (cause < v1::Cause_MIN || cause > v1::Cause_MAX) {
    return Broken(database, name, absl::StrCat("cause ", cause));
  }
  attempt.cause = static_cast<v1::Cause>(cause);
  if (!row.IsNull(4)) {
    ASSIGN_OR_RETURN(const int64_t rank, row.Int(4));
    attempt.first_rank = rank;
  }
  ASSIGN_OR_RETURN(attempt.worker, row.Text(5));
  ASSIGN_OR_RETURN(attempt.message, row.Text(6));
  ASSIGN_OR_RETURN(attempt.started, TimeOf(row, 7));
  ASSIGN_OR_RETURN(attempt.ended, OptionalTime(row, 8));
  ASSIGN_OR_RETURN(const std::string layout, row.Blob(9));
  if (!attempt.layout.ParseFromString(layout)) {
    return Broken(database, name, "layout");
  }
  ASSIGN_OR_RETURN(const std::string facts, row.Blob(10));
  if (!attempt.facts.ParseFromString(facts)) {
    return Broken(database, name, "facts");
  }
  ASSIGN_OR_RETURN(attempt.secret, row.Text(11));
  return attempt;
}

absl::StatusOr<CheckpointRecord> ReadCheckpoint(const SqliteStatement& row) {
  CheckpointRecord checkpoint;
  ASSIGN_OR_RETURN(checkpoint.job, row.Text(0));
  ASSIGN_OR_RETURN(checkpoint.generation, row.Int(1));
  ASSIGN_OR_RETURN(checkpoint.step, row.Int(2));
  ASSIGN_OR_RETURN(checkpoint.path, row.Text(3));
  ASSIGN_OR_RETURN(checkpoint.manifest_hash, row.Text(4));
  ASSIGN_OR_RETURN(const int64_t bytes, row.Int(5));
  checkpoint.bytes = static_cast<uint64_t>(bytes);
  ASSIGN_OR_RETURN(checkpoint.committed, TimeOf(row, 6));
  return checkpoint;
}

// Calls `take` for each row of `sql`.
template <typename Take>
absl::Status ForEachRow(SqliteDatabase& database, const std::string& sql,
                        Take take) {
  ASSIGN_OR_RETURN(SqliteStatement statement, database.Prepare(sql));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return absl::OkStatus();
    RETURN_IF_ERROR(take(statement));
  }
}

using AttemptKey = std::pair<std::string, int64_t>;

absl::Status ReadRanks(SqliteDatabase& database, StoredState& state) {
  std::map<AttemptKey, AttemptRecord*> attempts;
  for (AttemptRecord& attempt : state.attempts) {
    attempts.emplace(AttemptKey(attempt.job, attempt.generation), &attempt);
  }
  return ForEachRow(
      database,
      "SELECT job, generation, rank, worker, incarnation, device, "
      "memory_limit_bytes, exited FROM ranks ORDER BY job, generation, rank",
      [&](const SqliteStatement& row) -> absl::Status {
        AttemptKey key;
        ASSIGN_OR_RETURN(key.first, row.Text(0));
        ASSIGN_OR_RETURN(key.second, row.Int(1));
        ASSIGN_OR_RETURN(const int64_t rank, row.Int(2));
        const auto attempt = attempts.find(key);
        if (attempt == attempts.end() ||
            rank != static_cast<int64_t>(attempt->second->ranks.size())) {
          return Broken(database, absl::StrCat("job ", key.first),
                        absl::StrCat("rank ", rank));
        }
        RankRecord place;
        ASSIGN_OR_RETURN(place.worker, row.Text(3));
        ASSIGN_OR_RETURN(place.incarnation, row.Text(4));
        ASSIGN_OR_RETURN(place.device, row.Text(5));
        ASSIGN_OR_RETURN(const int64_t limit, row.Int(6));
        place.memory_limit_bytes = static_cast<uint64_t>(limit);
        ASSIGN_OR_RETURN(const int64_t exited, row.Int(7));
        place.exited = exited != 0;
        place.ended_badly = exited == 2;
        attempt->second->ranks.push_back(std::move(place));
        return absl::OkStatus();
      });
}

absl::Status ReadMemory(SqliteDatabase& database, StoredState& state) {
  return ForEachRow(database,
                    "SELECT job, generation, report FROM memory "
                    "ORDER BY job, generation, rank",
                    [&](const SqliteStatement& row) -> absl::Status {
                      MemoryRecord memory;
                      ASSIGN_OR_RETURN(memory.job, row.Text(0));
                      ASSIGN_OR_RETURN(memory.generation, row.Int(1));
                      ASSIGN_OR_RETURN(const std::string report, row.Blob(2));
                      if (!memory.report.ParseFromString(report)) {
                        return Broken(database,
                                      absl::StrCat("job ", memory.job),
                                      "memory report");
                      }
                      state.memory.push_back(std::move(memory));
                      return absl::OkStatus();
                    });
}

absl::Status ReadRendezvous(SqliteDatabase& database, StoredState& state) {
  return ForEachRow(database,
                    "SELECT job, generation, key, value FROM rendezvous",
                    [&](const SqliteStatement& row) -> absl::Status {
                      RendezvousRecord record;
                      ASSIGN_OR_RETURN(record.job, row.Text(0));
                      ASSIGN_OR_RETURN(record.generation, row.Int(1));
                      ASSIGN_OR_RETURN(record.key, row.Text(2));
                      ASSIGN_OR_RETURN(record.value, row.Blob(3));
                      state.rendezvous.push_back(std::move(record));
                      return absl::OkStatus();
                    });
}

}  // namespace

bool IsJobId(std::string_view id) {
  if (id.empty() || id.size() > kMostJobIdBytes) return false;
  if (!absl::ascii_isalnum(static_cast<unsigned char>(id[0]))) return false;
  for (const char c : id) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' &&
        c != '_' && c != '.') {
      return false;
    }
  }
  return true;
}

absl::StatusOr<StoredState> ReadStoredState(SqliteDatabase& database) {
  StoredState state;
  RETURN_IF_ERROR(ForEachRow(
      database,
      "SELECT id, request_id, submit_order, spec, state, reason, cause, "
      "generation, submitted_us, started_us, ended_us, step, steps, devices, "
      "devices_at_most, resume_job, resume_checkpoint, cancel_reason FROM jobs "
      "ORDER BY submit_order",
      [&](const SqliteStatement& row) -> absl::Status {
        ASSIGN_OR_RETURN(JobRecord job, ReadJob(database, row));
        state.jobs.push_back(std::move(job));
        return absl::OkStatus();
      }));
  RETURN_IF_ERROR(ForEachRow(
      database,
      "SELECT job, generation, outcome, cause, first_rank, worker, message, "
      "started_us, ended_us, layout, facts, secret FROM attempts "
      "ORDER BY job, generation",
      [&](const SqliteStatement& row) -> absl::Status {
        ASSIGN_OR_RETURN(AttemptRecord attempt, ReadAttempt(database, row));
        state.attempts.push_back(std::move(attempt));
        return absl::OkStatus();
      }));
  RETURN_IF_ERROR(ForEachRow(
      database,
      "SELECT job, generation, step, path, manifest_hash, bytes, committed_us "
      "FROM checkpoints ORDER BY job, generation, step",
      [&](const SqliteStatement& row) -> absl::Status {
        ASSIGN_OR_RETURN(CheckpointRecord checkpoint, ReadCheckpoint(row));
        state.checkpoints.push_back(std::move(checkpoint));
        return absl::OkStatus();
      }));
  RETURN_IF_ERROR(ReadRanks(database, state));
  RETURN_IF_ERROR(ReadMemory(database, state));
  RETURN_IF_ERROR(ReadRendezvous(database, state));
  return state;
}

absl::StatusOr<std::vector<v1::Event>> ReadEvents(SqliteDatabase& database,
                                                  const std::string& job,
                                                  int64_t limit) {
  ASSIGN_OR_RETURN(
      SqliteStatement statement,
      database.Prepare(
          job.empty()
              ? "SELECT job, generation, type, message, time_us FROM events "
                "ORDER BY id DESC LIMIT ?1"
              : "SELECT job, generation, type, message, time_us FROM events "
                "WHERE job = ?2 ORDER BY id DESC LIMIT ?1"));
  statement.BindInt(1, limit);
  if (!job.empty()) statement.BindText(2, job);
  std::vector<v1::Event> events;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) break;
    v1::Event event;
    ASSIGN_OR_RETURN(*event.mutable_job(), statement.Text(0));
    ASSIGN_OR_RETURN(const int64_t generation, statement.Int(1));
    event.set_generation(generation);
    ASSIGN_OR_RETURN(*event.mutable_type(), statement.Text(2));
    ASSIGN_OR_RETURN(*event.mutable_message(), statement.Text(3));
    ASSIGN_OR_RETURN(const int64_t micros, statement.Int(4));
    *event.mutable_time() =
        google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(micros);
    events.push_back(std::move(event));
  }
  return std::vector<v1::Event>(events.rbegin(), events.rend());
}

}  // namespace lockstep
