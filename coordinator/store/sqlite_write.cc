#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "coordinator/store/sqlite_records.h"
#include "google/protobuf/util/time_util.h"

namespace lockstep {
namespace {

void BindTime(SqliteStatement& statement, int parameter,
              const std::optional<absl::Time>& time) {
  if (time.has_value()) {
    statement.BindInt(parameter, absl::ToUnixMicros(*time));
  } else {
    statement.BindNull(parameter);
  }
}

// As docs/formats/job_store.md has it.
int64_t ToExitNumber(const RankRecord& rank) {
  if (!rank.exited) return 0;
  return rank.ended_badly ? 2 : 1;
}

}  // namespace

struct SqliteChangeWriter::Statements {
  SqliteStatement put_job;
  SqliteStatement put_attempt;
  SqliteStatement put_rank;
  SqliteStatement put_checkpoint;
  SqliteStatement put_memory;
  SqliteStatement put_rendezvous;
  SqliteStatement add_transition;
  SqliteStatement add_event;
  SqliteStatement forget_checkpoint;
  SqliteStatement forget_rendezvous;
  std::vector<SqliteStatement> delete_job;
};

absl::StatusOr<std::unique_ptr<SqliteChangeWriter>> SqliteChangeWriter::Create(
    SqliteDatabase& database) {
  // An update that names the key, so that a taken request id is an error.
  ASSIGN_OR_RETURN(
      SqliteStatement put_job,
      database.Prepare(
          "INSERT INTO jobs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
          "?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18) "
          "ON CONFLICT (id) DO UPDATE SET "
          "spec = ?4, state = ?5, reason = ?6, cause = ?7, generation = ?8, "
          "started_us = ?10, ended_us = ?11, step = ?12, steps = ?13, "
          "devices = ?14, resume_job = ?16, resume_checkpoint = ?17, "
          "cancel_reason = ?18"));
  ASSIGN_OR_RETURN(SqliteStatement put_attempt,
                   database.Prepare("INSERT OR REPLACE INTO attempts VALUES "
                                    "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
                                    "?11, ?12)"));
  ASSIGN_OR_RETURN(SqliteStatement put_rank,
                   database.Prepare("INSERT OR REPLACE INTO ranks VALUES "
                                    "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"));
  ASSIGN_OR_RETURN(SqliteStatement put_checkpoint,
                   database.Prepare("INSERT OR REPLACE INTO checkpoints VALUES "
                                    "(?1, ?2, ?3, ?4, ?5, ?6, ?7)"));
  ASSIGN_OR_RETURN(SqliteStatement put_memory,
                   database.Prepare("INSERT OR REPLACE INTO memory VALUES "
                                    "(?1, ?2, ?3, ?4)"));
  ASSIGN_OR_RETURN(SqliteStatement put_rendezvous,
                   database.Prepare("INSERT OR REPLACE INTO rendezvous VALUES "
                                    "(?1, ?2, ?3, ?4)"));
  ASSIGN_OR_RETURN(
      SqliteStatement add_transition,
      database.Prepare("INSERT INTO transitions (job, generation, from_state, "
                       "to_state, reason, time_us) VALUES "
                       "(?1, ?2, ?3, ?4, ?5, ?6)"));
  ASSIGN_OR_RETURN(
      SqliteStatement add_event,
      database.Prepare("INSERT INTO events (job, generation, type, message, "
                       "time_us) VALUES (?1, ?2, ?3, ?4, ?5)"));
  ASSIGN_OR_RETURN(
      SqliteStatement forget_checkpoint,
      database.Prepare("DELETE FROM checkpoints WHERE job = ?1 AND "
                       "generation = ?2 AND step = ?3"));
  ASSIGN_OR_RETURN(
      SqliteStatement forget_rendezvous,
      database.Prepare(
          "DELETE FROM rendezvous WHERE job = ?1 AND generation = ?2"));
  std::vector<SqliteStatement> delete_job;
  for (const char* sql :
       {"DELETE FROM jobs WHERE id = ?1", "DELETE FROM attempts WHERE job = ?1",
        "DELETE FROM ranks WHERE job = ?1",
        "DELETE FROM transitions WHERE job = ?1",
        "DELETE FROM events WHERE job = ?1",
        "DELETE FROM checkpoints WHERE job = ?1",
        "DELETE FROM memory WHERE job = ?1",
        "DELETE FROM rendezvous WHERE job = ?1"}) {
    ASSIGN_OR_RETURN(SqliteStatement statement, database.Prepare(sql));
    delete_job.push_back(std::move(statement));
  }
  auto statements = std::make_unique<Statements>(Statements{
      std::move(put_job), std::move(put_attempt), std::move(put_rank),
      std::move(put_checkpoint), std::move(put_memory),
      std::move(put_rendezvous), std::move(add_transition),
      std::move(add_event), std::move(forget_checkpoint),
      std::move(forget_rendezvous), std::move(delete_job)});
  return std::unique_ptr<SqliteChangeWriter>(
      new SqliteChangeWriter(std::move(statements)));
}

SqliteChangeWriter::SqliteChangeWriter(std::unique_ptr<Statements> statements)
    : statements_(std::move(statements)) {}

SqliteChangeWriter::~SqliteChangeWriter() = default;

absl::Status SqliteChangeWriter::Apply(const StoreChange& change) {
  for (const JobRecord& job : change.jobs) RETURN_IF_ERROR(PutJob(job));
  for (const AttemptRecord& attempt : change.attempts) {
    RETURN_IF_ERROR(PutAttempt(attempt));
  }
  for (const CheckpointRecord& checkpoint : change.checkpoints) {
    RETURN_IF_ERROR(PutCheckpoint(checkpoint));
  }
  for (const MemoryRecord& memory : change.memory) {
    RETURN_IF_ERROR(statements_->put_memory.BindText(1, memory.job)
                        .BindInt(2, memory.generation)
                        .BindInt(3, memory.report.rank())
                        .BindBlob(4, memory.report.SerializeAsString())
                        .Run());
  }
  for (const RendezvousRecord& rendezvous : change.rendezvous) {
    RETURN_IF_ERROR(statements_->put_rendezvous.BindText(1, rendezvous.job)
                        .BindInt(2, rendezvous.generation)
                        .BindText(3, rendezvous.key)
                        .BindBlob(4, rendezvous.value)
                        .Run());
  }
  for (const TransitionRecord& transition : change.transitions) {
    RETURN_IF_ERROR(AddTransition(transition));
  }
  for (const v1::Event& event : change.events) {
    RETURN_IF_ERROR(AddEvent(event));
  }
  for (const CheckpointRecord& checkpoint : change.forgotten_checkpoints) {
    RETURN_IF_ERROR(statements_->forget_checkpoint.BindText(1, checkpoint.job)
                        .BindInt(2, checkpoint.generation)
                        .BindInt(3, checkpoint.step)
                        .Run());
  }
  for (const v1::GangId& gang : change.forgotten_rendezvous) {
    RETURN_IF_ERROR(statements_->forget_rendezvous.BindText(1, gang.job())
                        .BindInt(2, gang.generation())
                        .Run());
  }
  for (const std::string& job : change.deleted_jobs) {
    RETURN_IF_ERROR(DeleteJob(job));
  }
  return absl::OkStatus();
}

absl::Status SqliteChangeWriter::PutJob(const JobRecord& job) {
  SqliteStatement& statement = statements_->put_job;
  statement.BindText(1, job.id)
      .BindText(2, job.request_id)
      .BindInt(3, job.submit_order)
      .BindBlob(4, job.spec.SerializeAsString())
      .BindInt(5, job.state)
      .BindText(6, job.reason)
      .BindInt(7, job.cause)
      .BindInt(8, job.generation)
      .BindInt(9, absl::ToUnixMicros(job.submitted));
  BindTime(statement, 10, job.started);
  BindTime(statement, 11, job.ended);
  return statement.BindInt(12, job.step)
      .BindInt(13, job.steps)
      .BindInt(14, job.devices)
      .BindInt(15, job.devices_at_most ? 1 : 0)
      .BindText(16, job.resume_job)
      .BindText(17, job.resume_checkpoint)
      .BindText(18, job.cancel_reason)
      .Run();
}

absl::Status SqliteChangeWriter::PutAttempt(const AttemptRecord& attempt) {
  SqliteStatement& statement = statements_->put_attempt;
  statement.BindText(1, attempt.job)
      .BindInt(2, attempt.generation)
      .BindInt(3, attempt.outcome)
      .BindInt(4, attempt.cause);
  if (attempt.first_rank.has_value()) {
    statement.BindInt(5, *attempt.first_rank);
  } else {
    statement.BindNull(5);
  }
  statement.BindText(6, attempt.worker)
      .BindText(7, attempt.message)
      .BindInt(8, absl::ToUnixMicros(attempt.started));
  BindTime(statement, 9, attempt.ended);
  RETURN_IF_ERROR(statement.BindBlob(10, attempt.layout.SerializeAsString())
                      .BindBlob(11, attempt.facts.SerializeAsString())
                      .BindText(12, attempt.secret)
                      .Run());
  for (size_t rank = 0; rank < attempt.ranks.size(); ++rank) {
    const RankRecord& place = attempt.ranks[rank];
    RETURN_IF_ERROR(
        statements_->put_rank.BindText(1, attempt.job)
            .BindInt(2, attempt.generation)
            .BindInt(3, static_cast<int64_t>(rank))
            .BindText(4, place.worker)
            .BindText(5, place.incarnation)
            .BindText(6, place.device)
            .BindInt(7, static_cast<int64_t>(place.memory_limit_bytes))
            .BindInt(8, ToExitNumber(place))
            .Run());
  }
  return absl::OkStatus();
}

absl::Status SqliteChangeWriter::PutCheckpoint(
    const CheckpointRecord& checkpoint) {
  return statements_->put_checkpoint.BindText(1, checkpoint.job)
      .BindInt(2, checkpoint.generation)
      .BindInt(3, checkpoint.step)
      .BindText(4, checkpoint.path)
      .BindText(5, checkpoint.manifest_hash)
      .BindInt(6, static_cast<int64_t>(checkpoint.bytes))
      .BindInt(7, absl::ToUnixMicros(checkpoint.committed))
      .Run();
}

absl::Status SqliteChangeWriter::AddTransition(
    const TransitionRecord& transition) {
  return statements_->add_transition.BindText(1, transition.job)
      .BindInt(2, transition.generation)
      .BindInt(3, transition.from)
      .BindInt(4, transition.to)
      .BindText(5, transition.reason)
      .BindInt(6, absl::ToUnixMicros(transition.time))
      .Run();
}

absl::Status SqliteChangeWriter::AddEvent(const v1::Event& event) {
  const int64_t time =
      google::protobuf::util::TimeUtil::TimestampToMicroseconds(event.time());
  return statements_->add_event.BindText(1, event.job())
      .BindInt(2, event.generation())
      .BindText(3, event.type())
      .BindText(4, event.message())
      .BindInt(5, time)
      .Run();
}

absl::Status SqliteChangeWriter::DeleteJob(const std::string& job) {
  for (SqliteStatement& statement : statements_->delete_job) {
    RETURN_IF_ERROR(statement.BindText(1, job).Run());
  }
  return absl::OkStatus();
}

}  // namespace lockstep
