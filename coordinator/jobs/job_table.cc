#include "coordinator/jobs/job_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "common/timestamp.h"

namespace lockstep {
namespace {

constexpr size_t kMostNamedCandidates = 5;

absl::Status NoJob(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("no job \"", name, "\""));
}

bool IsAttemptLive(const std::map<int64_t, AttemptRecord>& attempts) {
  return !attempts.empty() && !attempts.rbegin()->second.ended.has_value();
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobTable>> JobTable::Load(JobStore& store,
                                                         StoredState state,
                                                         Clock& clock,
                                                         Options options) {
  auto table =
      std::unique_ptr<JobTable>(new JobTable(store, clock, std::move(options)));
  absl::MutexLock lock(&table->mutex_);
  for (JobRecord& job : state.jobs) {
    table->next_order_ = std::max(table->next_order_, job.submit_order + 1);
    table->by_request_.emplace(job.request_id, job.id);
    Entry entry;
    entry.record = std::move(job);
    const std::string id = entry.record.id;
    table->jobs_.emplace(id, std::move(entry));
  }
  for (AttemptRecord& attempt : state.attempts) {
    const auto job = table->jobs_.find(attempt.job);
    if (job == table->jobs_.end()) continue;
    const int64_t generation = attempt.generation;
    job->second.attempts.emplace(generation, std::move(attempt));
  }
  for (CheckpointRecord& checkpoint : state.checkpoints) {
    const auto job = table->jobs_.find(checkpoint.job);
    if (job == table->jobs_.end()) continue;
    job->second.checkpoints.push_back(std::move(checkpoint));
  }
  for (MemoryRecord& memory : state.memory) {
    const auto job = table->jobs_.find(memory.job);
    if (job == table->jobs_.end()) continue;
    Entry& entry = job->second;
    if (memory.generation > entry.memory_generation) entry.memory.clear();
    entry.memory_generation = memory.generation;
    const int64_t rank = memory.report.rank();
    entry.memory.insert_or_assign(rank, std::move(memory.report));
  }
  for (auto& [id, entry] : table->jobs_) {
    if (IsEnded(entry.record.state)) continue;
    const auto history = table->HistoryOf(entry);
    if (!history.ok()) return history.status();
  }
  return table;
}

JobTable::JobTable(JobStore& store, Clock& clock, Options options)
    : store_(store), clock_(clock), options_(std::move(options)) {}

JobTable::~JobTable() {
  absl::MutexLock lock(&mutex_);
  const auto settled = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return adding_.empty() && deleting_.empty();
  };
  mutex_.Await(absl::Condition(&settled));
}

absl::StatusOr<JobTable::Entry*> JobTable::Find(const std::string& id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return NoJob(id);
  return &found->second;
}

absl::StatusOr<const JobTable::Entry*> JobTable::Find(
    const std::string& id) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return NoJob(id);
  return &found->second;
}

absl::StatusOr<std::string> JobTable::Resolve(const std::string& name) const {
  if (name.empty()) return absl::InvalidArgumentError("no job is named");
  absl::MutexLock lock(&mutex_);
  if (jobs_.count(name) > 0) return name;
  // Trained jobs first, then those with an action.
  for (const bool with_action : {false, true}) {
    const JobRecord* newest = nullptr;
    std::vector<std::string> candidates;
    for (const auto& [id, entry] : jobs_) {
      if (entry.record.spec.has_action() != with_action) continue;
      if (entry.record.spec.name() == name &&
          (newest == nullptr ||
           entry.record.submit_order > newest->submit_order)) {
        newest = &entry.record;
      }
      if (absl::StartsWith(id, name)) {
        candidates.push_back(id);
      }
    }
    if (newest != nullptr) return newest->id;
    if (candidates.size() == 1) return candidates.front();
    if (candidates.size() > 1) {
      const size_t count = candidates.size();
      candidates.resize(std::min(count, kMostNamedCandidates));
      return absl::FailedPreconditionError(
          absl::StrCat("\"", name, "\" is a prefix of ", count,
                       " jobs: ", absl::StrJoin(candidates, ", "),
                       count > candidates.size() ? ", ..." : ""));
    }
  }
  return NoJob(name);
}

absl::StatusOr<JobRecord> JobTable::Get(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const Entry* entry, Find(id));
  return entry->record;
}

std::vector<JobRecord> JobTable::ListIf(
    const std::function<bool(const Entry&)>& wanted) const {
  std::vector<JobRecord> jobs;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, entry] : jobs_) {
      if (wanted(entry)) jobs.push_back(entry.record);
    }
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const JobRecord& a, const JobRecord& b) {
              return a.submit_order < b.submit_order;
            });
  return jobs;
}

std::vector<JobRecord> JobTable::List() const {
  return ListIf([](const Entry&) { return true; });
}

std::vector<JobRecord> JobTable::Pending() const {
  return ListIf([](const Entry& entry) {
    return entry.record.state == v1::JOB_STATE_PENDING;
  });
}

std::vector<JobRecord> JobTable::Running() const {
  return ListIf([](const Entry& entry) {
    return !IsEnded(entry.record.state) && IsAttemptLive(entry.attempts);
  });
}

std::map<JobState, int64_t> JobTable::CountByState() const {
  std::map<JobState, int64_t> counts;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, entry] : jobs_) ++counts[entry.record.state];
  return counts;
}

std::optional<JobRecord> JobTable::FindRequest(
    const std::string& request_id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = by_request_.find(request_id);
  if (found == by_request_.end()) return std::nullopt;
  return jobs_.at(found->second).record;
}

std::vector<AttemptRecord> JobTable::Attempts(const std::string& id) const {
  std::vector<AttemptRecord> attempts;
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return attempts;
  for (const auto& [generation, attempt] : found->second.attempts) {
    attempts.push_back(attempt);
  }
  return attempts;
}

std::optional<AttemptRecord> JobTable::NewestAttempt(
    const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second.attempts.empty()) {
    return std::nullopt;
  }
  return found->second.attempts.rbegin()->second;
}

std::vector<CheckpointRecord> JobTable::Checkpoints(
    const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return {};
  return {found->second.checkpoints.rbegin(), found->second.checkpoints.rend()};
}

std::vector<v1::MemoryReport> JobTable::Memory(const std::string& id) const {
  std::vector<v1::MemoryReport> memory;
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return memory;
  for (const auto& [rank, report] : found->second.memory) {
    memory.push_back(report);
  }
  return memory;
}

absl::StatusOr<std::shared_ptr<JobHistory>> JobTable::HistoryOf(
    const Entry& entry) const {
  if (entry.history == nullptr) {
    ASSIGN_OR_RETURN(entry.history,
                     JobHistory::Open(JobFolder(entry.record.id) + "/history",
                                      options_.history));
  }
  return entry.history;
}

absl::StatusOr<std::shared_ptr<JobHistory>> JobTable::History(
    const std::string& id) const {
  {
    absl::MutexLock lock(&mutex_);
    ASSIGN_OR_RETURN(const Entry* entry, Find(id));
    if (entry->history != nullptr) return entry->history;
  }
  // An old job's history may be large: read it without the lock.
  ASSIGN_OR_RETURN(
      std::shared_ptr<JobHistory> history,
      JobHistory::Open(JobFolder(id) + "/history", options_.history));
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const Entry* entry, Find(id));
  if (entry->history == nullptr) entry->history = std::move(history);
  return entry->history;
}

absl::StatusOr<v1::JobInfo> JobTable::Info(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const Entry* entry, Find(id));
  return InfoOf(*entry);
}

v1::JobInfo JobTable::InfoOf(const Entry& entry) const {
  v1::JobInfo info = ToInfo(entry.record);
  if (entry.history != nullptr) {
    const HistorySummary summary = entry.history->summary();
    if (summary.last_step.has_value()) info.set_step(summary.last_step->step());
  }
  return info;
}

v1::JobInfo JobTable::ToInfo(const JobRecord& record) const {
  v1::JobInfo info;
  info.set_id(record.id);
  info.set_name(record.spec.name());
  info.set_state(record.state);
  info.set_reason(record.reason);
  info.set_step(record.step);
  info.set_steps(record.steps);
  info.set_devices(record.devices);
  *info.mutable_submitted() = ToTimestamp(record.submitted);
  if (record.started) *info.mutable_started() = ToTimestamp(*record.started);
  if (record.ended) *info.mutable_ended() = ToTimestamp(*record.ended);
  *info.mutable_spec() = record.spec;
  info.set_generation(record.generation);
  info.set_cause(record.cause);
  return info;
}

void JobTable::WriteHistories() {
  std::vector<std::shared_ptr<JobHistory>> histories;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, entry] : jobs_) {
      if (entry.history != nullptr) histories.push_back(entry.history);
    }
  }
  for (const auto& history : histories) history->TryAgain();
}

std::string JobTable::JobFolder(const std::string& id) const {
  return absl::StrCat(options_.job_root, "/", id);
}

v1::Event JobTable::MakeEvent(const Entry& entry, const std::string& type,
                              const std::string& message) const {
  v1::Event event;
  *event.mutable_time() = ToTimestamp(clock_.Now());
  event.set_job(entry.record.id);
  event.set_generation(entry.record.generation);
  event.set_type(type);
  event.set_message(message);
  return event;
}

}  // namespace lockstep
