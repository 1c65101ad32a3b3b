// The changes of a JobTable; see also job_deletion.cc.
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "coordinator/jobs/job_table.h"

namespace lockstep {
namespace {

constexpr int kLeastSuffix = 4;
constexpr int kMostSuffix = 6;
constexpr int kTriesPerSuffix = 20;

// Events are called as the state that they lead to.
std::string EventType(JobState state) {
  return absl::AsciiStrToLower(JobStateWord(state));
}

absl::Status NotMoved(const JobRecord& record, JobState to) {
  return absl::FailedPreconditionError(
      absl::StrCat("job ", record.id, " is ", JobStateWord(record.state),
                   " and can't become ", JobStateWord(to)));
}

bool ByGenerationAndStep(const CheckpointRecord& a, const CheckpointRecord& b) {
  return std::pair(a.generation, a.step) < std::pair(b.generation, b.step);
}

// The checkpoint that a job starts from, and the job that wrote it; empty:
// none.
const std::string& StartCheckpoint(const JobRecord& job) {
  return job.spec.has_action() ? job.spec.action().checkpoint()
                               : job.resume_checkpoint;
}

const std::string& StartJob(const JobRecord& job) {
  return job.spec.has_action() ? job.spec.action().source_job()
                               : job.resume_job;
}

}  // namespace

std::string JobTable::MakeId(const std::string& name) {
  const auto taken = [this](const std::string& id)
                         ABSL_NO_THREAD_SAFETY_ANALYSIS {
                           if (jobs_.count(id) > 0) return true;
                           return std::any_of(adding_.begin(), adding_.end(),
                                              [&id](const auto& adding) {
                                                return adding.second->id == id;
                                              });
                         };
  std::string id;
  for (int length = kLeastSuffix; length <= kMostSuffix; ++length) {
    for (int i = 0; i < kTriesPerSuffix; ++i) {
      id = absl::StrCat(name, "-", options_.random_suffix(length));
      if (!taken(id)) return id;
    }
  }
  CHECK(!taken(id)) << "no free id for " << name;
  return id;
}

absl::StatusOr<JobRecord> JobTable::Add(JobRecord job, absl::Duration timeout) {
  std::shared_ptr<Adding> adding;
  bool is_new = false;
  StoreChange change;
  {
    absl::MutexLock lock(&mutex_);
    const auto known = by_request_.find(job.request_id);
    if (known != by_request_.end()) return jobs_.at(known->second).record;
    const auto on_its_way = adding_.find(job.request_id);
    if (on_its_way != adding_.end()) {
      adding = on_its_way->second;
    } else {
      RETURN_IF_ERROR(CheckStart(job));
      is_new = true;
      adding = std::make_shared<Adding>();
      adding->start_checkpoint = StartCheckpoint(job);
      job.id = adding->id = MakeId(job.spec.name());
      job.submit_order = next_order_++;
      job.submitted = clock_.Now();
      job.state = v1::JOB_STATE_PENDING;
      adding_.emplace(job.request_id, adding);
      Entry entry;
      entry.record = job;
      change.events.push_back(MakeEvent(entry, "submitted", ""));
    }
  }
  if (is_new) {
    change.jobs.push_back(job);
    change.transitions.push_back({job.id, 0, v1::JOB_STATE_UNSPECIFIED,
                                  v1::JOB_STATE_PENDING, job.reason,
                                  job.submitted});
    const v1::Event event = change.events.front();
    store_.Write(std::move(change),
                 [this, job, event, adding](absl::Status status) {
                   FinishAdd(job, event, adding, status);
                 });
  }
  absl::MutexLock lock(&mutex_);
  if (!mutex_.AwaitWithTimeout(absl::Condition(&adding->done), timeout)) {
    return absl::DeadlineExceededError(
        absl::StrCat("not stored within ", absl::FormatDuration(timeout),
                     "; the same request may be sent again"));
  }
  RETURN_IF_ERROR(adding->status);
  ASSIGN_OR_RETURN(const Entry* entry, Find(adding->id));
  return entry->record;
}

absl::Status JobTable::CheckStart(const JobRecord& job) const {
  const std::string& path = StartCheckpoint(job);
  if (path.empty()) return absl::OkStatus();
  const std::string& source = StartJob(job);
  const auto found = jobs_.find(source);
  if (found == jobs_.end() || deleting_.count(source) > 0) {
    return absl::NotFoundError(
        absl::StrCat("job ", source, " is being deleted"));
  }
  const std::vector<CheckpointRecord>& all = found->second.checkpoints;
  const bool kept = std::any_of(
      all.begin(), all.end(),
      [&](const CheckpointRecord& one) { return one.path == path; });
  if (kept) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "job ", source, ": checkpoint ", path,
      " has just been replaced by a newer one; the same request may be sent "
      "again"));
}

void JobTable::FinishAdd(const JobRecord& record, const v1::Event& event,
                         const std::shared_ptr<Adding>& adding,
                         const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  adding_.erase(record.request_id);
  adding->done = true;
  adding->status = status;
  if (!status.ok()) return;
  Entry& entry = jobs_[record.id];
  entry.record = record;
  by_request_[record.request_id] = record.id;
  const auto history = HistoryOf(entry);
  if (!history.ok()) {
    LOG(ERROR) << "job " << record.id << ": " << history.status().message();
    return;
  }
  v1::JobUpdate update;
  *update.mutable_event() = event;
  (*history)->Append(0, update);
  *update.mutable_job() = InfoOf(entry);
  (*history)->Append(0, std::move(update));
}

bool JobTable::IsUsedByLiveJob(const CheckpointRecord& checkpoint) const {
  for (const auto& [id, entry] : jobs_) {
    const JobRecord& record = entry.record;
    if (!IsEnded(record.state) && StartCheckpoint(record) == checkpoint.path) {
      return true;
    }
  }
  return std::any_of(adding_.begin(), adding_.end(), [&](const auto& adding) {
    return adding.second->start_checkpoint == checkpoint.path;
  });
}

void JobTable::Commit(Entry& entry, StoreChange change) {
  const auto history = HistoryOf(entry);
  if (history.ok()) {
    v1::JobUpdate update;
    for (const v1::Event& event : change.events) {
      *update.mutable_event() = event;
      (*history)->Append(entry.record.generation, update);
    }
    if (!change.jobs.empty()) {
      *update.mutable_job() = InfoOf(entry);
      (*history)->Append(entry.record.generation, std::move(update));
    }
    if (IsEnded(entry.record.state)) (*history)->Settle();
  } else {
    LOG(ERROR) << "job " << entry.record.id << ": "
               << history.status().message();
  }
  store_.Enqueue(std::move(change));
}

absl::Status JobTable::Move(Entry& entry, JobState to,
                            const std::string& reason, StoreChange& change) {
  JobRecord& record = entry.record;
  if (!CanMove(record.state, to)) return NotMoved(record, to);
  const absl::Time now = clock_.Now();
  change.transitions.push_back(
      {record.id, record.generation, record.state, to, reason, now});
  change.events.push_back(MakeEvent(entry, EventType(to), reason));
  record.state = to;
  record.reason = reason;
  if (to == v1::JOB_STATE_STARTING && !record.started) record.started = now;
  if (IsEnded(to)) record.ended = now;
  record.step = InfoOf(entry).step();
  change.jobs.push_back(record);
  if (options_.on_move) options_.on_move(record);
  return absl::OkStatus();
}

absl::Status JobTable::SetReason(const std::string& id,
                                 const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Entry * entry, Find(id));
  if (entry->record.state != v1::JOB_STATE_PENDING) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", id, " is not pending"));
  }
  if (entry->record.reason == reason) return absl::OkStatus();
  entry->record.reason = reason;
  StoreChange change;
  change.jobs.push_back(entry->record);
  Commit(*entry, std::move(change));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> JobTable::NextGeneration(const std::string& id) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Entry * entry, Find(id));
  ++entry->record.generation;
  StoreChange change;
  change.jobs.push_back(entry->record);
  // No news for watchers: the ranks may not start.
  store_.Enqueue(std::move(change));
  return entry->record.generation;
}

absl::Status JobTable::StartAttempt(const AttemptRecord& attempt,
                                    const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Entry * entry, Find(attempt.job));
  StoreChange change;
  const int64_t devices = entry->record.devices;
  entry->record.devices = static_cast<int64_t>(attempt.ranks.size());
  const absl::Status moved =
      Move(*entry, v1::JOB_STATE_STARTING, reason, change);
  if (!moved.ok()) {
    entry->record.devices = devices;
    return moved;
  }
  entry->attempts[attempt.generation] = attempt;
  entry->memory.clear();
  entry->memory_generation = attempt.generation;
  change.attempts.push_back(attempt);
  Commit(*entry, std::move(change));
  // The attempt has begun; without a history it only isn't watched.
  const auto history = HistoryOf(*entry);
  if (!history.ok()) {
    LOG(ERROR) << "job " << attempt.job << ": " << history.status().message();
    return absl::OkStatus();
  }
  v1::JobUpdate update;
  *update.mutable_layout() = attempt.layout.layout();
  (*history)->Append(attempt.generation, std::move(update));
  return absl::OkStatus();
}

absl::Status JobTable::MarkRunning(const std::string& id,
                                   const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Entry * entry, Find(id));
  StoreChange change;
  RETURN_IF_ERROR(Move(*entry, v1::JOB_STATE_RUNNING, reason, change));
  Commit(*entry, std::move(change));
  return absl::OkStatus();
}

absl::Status JobTable::RequestCancel(const std::string& id,
                                     const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Entry * entry, Find(id));
  entry->record.cancel_reason = reason;
  StoreChange change;
  change.jobs.push_back(entry->record);
  change.events.push_back(MakeEvent(*entry, "cancelling", reason));
  Commit(*entry, std::move(change));
  return absl::OkStatus();
}

absl::Status JobTable::RecordRankExit(const AttemptRecord& attempt,
                                      int64_t rank) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Entry * entry, Find(attempt.job));
  const auto known = entry->attempts.find(attempt.generation);
  if (known == entry->attempts.end() || rank < 0 ||
      rank >= static_cast<int64_t>(known->second.ranks.size()) ||
      rank >= static_cast<int64_t>(attempt.ranks.size())) {
    return absl::NotFoundError(
        absl::StrCat("job ", attempt.job, " has no rank ", rank, " of attempt ",
                     attempt.generation));
  }
  const auto place = static_cast<size_t>(rank);
  known->second.ranks[place] = attempt.ranks[place];
  StoreChange change;
  change.attempts.push_back(known->second);
  store_.Enqueue(std::move(change));
  return absl::OkStatus();
}

absl::Status JobTable::RecordFailure(const AttemptRecord& attempt) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Entry * entry, Find(attempt.job));
  entry->attempts[attempt.generation] = attempt;
  StoreChange change;
  change.attempts.push_back(attempt);
  change.events.push_back(MakeEvent(*entry, "failure", attempt.message));
  Commit(*entry, std::move(change));
  return absl::OkStatus();
}

absl::Status JobTable::EndAttempt(const AttemptRecord& attempt, JobState state,
                                  const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Entry * entry, Find(attempt.job));
  StoreChange change;
  const v1::Cause cause = std::exchange(entry->record.cause, attempt.cause);
  const absl::Status moved = Move(*entry, state, reason, change);
  if (!moved.ok()) {
    entry->record.cause = cause;
    return moved;
  }
  entry->attempts[attempt.generation] = attempt;
  change.attempts.push_back(attempt);
  v1::GangId gang;
  gang.set_job(attempt.job);
  gang.set_generation(attempt.generation);
  change.forgotten_rendezvous.push_back(std::move(gang));
  Commit(*entry, std::move(change));
  return absl::OkStatus();
}

absl::Status JobTable::EndPending(const std::string& id, JobState state,
                                  v1::Cause cause, const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Entry * entry, Find(id));
  if (entry->record.state != v1::JOB_STATE_PENDING) {
    return NotMoved(entry->record, state);
  }
  StoreChange change;
  entry->record.cause = cause;
  RETURN_IF_ERROR(Move(*entry, state, reason, change));
  Commit(*entry, std::move(change));
  return absl::OkStatus();
}

absl::Status JobTable::RecordFacts(const std::string& id, int64_t generation,
                                   const v1::RunFacts& facts) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Entry * entry, Find(id));
  const auto attempt = entry->attempts.find(generation);
  if (attempt == entry->attempts.end()) {
    return absl::NotFoundError(
        absl::StrCat("job ", id, " has no attempt ", generation));
  }
  attempt->second.facts = facts;
  if (!entry->record.spec.has_action()) entry->record.steps = facts.steps();
  StoreChange change;
  change.attempts.push_back(attempt->second);
  change.jobs.push_back(entry->record);
  Commit(*entry, std::move(change));
  return absl::OkStatus();
}

absl::Status JobTable::RecordMemory(const std::string& id, int64_t generation,
                                    const v1::MemoryReport& report) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Entry * entry, Find(id));
  if (generation < entry->memory_generation) return absl::OkStatus();
  if (generation > entry->memory_generation) entry->memory.clear();
  entry->memory_generation = generation;
  entry->memory.insert_or_assign(report.rank(), report);
  StoreChange change;
  change.memory.push_back({id, generation, report});
  store_.Enqueue(std::move(change));
  return absl::OkStatus();
}

absl::Status JobTable::CommitCheckpoint(const CheckpointRecord& checkpoint) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Entry * entry, Find(checkpoint.job));
  std::vector<CheckpointRecord>& all = entry->checkpoints;
  const auto place =
      std::lower_bound(all.begin(), all.end(), checkpoint, ByGenerationAndStep);
  const bool known =
      place != all.end() && !ByGenerationAndStep(checkpoint, *place);
  if (known) {
    if (place->manifest_hash == checkpoint.manifest_hash) {
      return absl::OkStatus();
    }
    *place = checkpoint;
  } else {
    all.insert(place, checkpoint);
  }
  StoreChange change;
  change.checkpoints.push_back(checkpoint);
  change.events.push_back(
      MakeEvent(*entry, "checkpoint",
                absl::StrCat("step ", checkpoint.step, " is committed")));
  Commit(*entry, std::move(change));
  return absl::OkStatus();
}

std::vector<CheckpointRecord> JobTable::ForgetOldCheckpoints(
    const std::string& id, int64_t keep) {
  std::vector<CheckpointRecord> forgotten;
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return forgotten;
  std::vector<CheckpointRecord>& all = found->second.checkpoints;
  const size_t kept = static_cast<size_t>(std::max<int64_t>(keep, 1));
  if (all.size() <= kept) return forgotten;
  std::vector<CheckpointRecord> left;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool old = i + kept < all.size();
    if (old && !IsUsedByLiveJob(all[i])) {
      forgotten.push_back(all[i]);
    } else {
      left.push_back(all[i]);
    }
  }
  all = std::move(left);
  if (forgotten.empty()) return forgotten;
  StoreChange change;
  change.forgotten_checkpoints = forgotten;
  store_.Enqueue(std::move(change));
  return forgotten;
}

void JobTable::AddEvent(const std::string& id, const std::string& type,
                        const std::string& message) {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  StoreChange change;
  change.events.push_back(MakeEvent(found->second, type, message));
  Commit(found->second, std::move(change));
}

}  // namespace lockstep
