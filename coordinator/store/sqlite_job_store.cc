#include "coordinator/store/sqlite_job_store.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "coordinator/store/sqlite_schema.h"

namespace lockstep {
namespace {

// The change itself can never be stored. All else is the store's trouble, which
// time or a person may cure: what was acknowledged must wait for that.
bool IsBadChange(const absl::Status& status) {
  return status.code() == absl::StatusCode::kAlreadyExists ||
         status.code() == absl::StatusCode::kInvalidArgument;
}

absl::Status MakeFolder(const std::string& path) {
  const std::filesystem::path folder =
      std::filesystem::path(path).parent_path();
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(folder.string(), ": can't be made: ", error.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteJobStore>> SqliteJobStore::Open(
    Options options) {
  RETURN_IF_ERROR(MakeFolder(options.path));
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> database,
                   SqliteDatabase::Open(options.path));
  RETURN_IF_ERROR(PrepareSchema(*database));
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteChangeWriter> writer,
                   SqliteChangeWriter::Create(*database));
  auto store = std::unique_ptr<SqliteJobStore>(new SqliteJobStore(
      std::move(options), std::move(database), std::move(writer)));
  store->thread_ = std::thread([raw = store.get()] { raw->Work(); });
  return store;
}

SqliteJobStore::SqliteJobStore(Options options,
                               std::unique_ptr<SqliteDatabase> database,
                               std::unique_ptr<SqliteChangeWriter> writer)
    : options_(std::move(options)),
      database_(std::move(database)),
      writer_(std::move(writer)) {}

SqliteJobStore::~SqliteJobStore() {
  {
    absl::MutexLock lock(&queue_mutex_);
    stopping_ = true;
  }
  thread_.join();
}

absl::StatusOr<StoredState> SqliteJobStore::Load() {
  absl::MutexLock lock(&database_mutex_);
  return ReadStoredState(*database_);
}

absl::StatusOr<std::vector<v1::Event>> SqliteJobStore::Events(
    const std::string& job, int64_t limit) {
  absl::MutexLock lock(&database_mutex_);
  return ReadEvents(*database_, job, limit);
}

void SqliteJobStore::Push(Entry entry) {
  absl::MutexLock lock(&queue_mutex_);
  queue_.push_back(std::move(entry));
}

void SqliteJobStore::Enqueue(StoreChange change) {
  Entry entry;
  entry.change = std::move(change);
  entry.has_change = true;
  Push(std::move(entry));
}

void SqliteJobStore::Write(StoreChange change,
                           std::function<void(absl::Status)> done) {
  Entry entry;
  entry.change = std::move(change);
  entry.has_change = true;
  entry.answer = std::move(done);
  Push(std::move(entry));
}

void SqliteJobStore::WhenStored(std::function<void()> done) {
  Entry entry;
  entry.stored = std::move(done);
  Push(std::move(entry));
}

absl::Status SqliteJobStore::WaitUntilStored(absl::Duration timeout) {
  auto stored = std::make_shared<absl::Notification>();
  WhenStored([stored] { stored->Notify(); });
  if (stored->WaitForNotificationWithTimeout(timeout)) return absl::OkStatus();
  const absl::Status trouble = health();
  const std::string text = absl::StrCat(description(), ": not stored within ",
                                        absl::FormatDuration(timeout));
  if (trouble.ok()) return absl::DeadlineExceededError(text);
  return absl::Status(trouble.code(),
                      absl::StrCat(text, ": ", trouble.message()));
}

absl::Status SqliteJobStore::health() const {
  absl::MutexLock lock(&queue_mutex_);
  return health_;
}

std::string SqliteJobStore::description() const {
  return absl::StrCat("sqlite:", options_.path);
}

void SqliteJobStore::Work() {
  std::deque<Entry> batch;
  for (;;) {
    bool last = false;
    {
      absl::MutexLock lock(&queue_mutex_);
      const auto wanted = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return stopping_ || !queue_.empty();
      };
      const auto stopping = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return stopping_;
      };
      if (batch.empty()) {
        queue_mutex_.Await(absl::Condition(&wanted));
      } else {
        // What is left failed just now.
        queue_mutex_.AwaitWithTimeout(absl::Condition(&stopping),
                                      options_.retry_interval);
      }
      while (!queue_.empty()) {
        batch.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
      last = stopping_;
    }
    const bool writes =
        std::any_of(batch.begin(), batch.end(),
                    [](const Entry& entry) { return entry.has_change; });
    absl::Status status = Commit(batch);
    {
      absl::MutexLock lock(&queue_mutex_);
      if (!status.ok() && health_.ok()) {
        LOG(ERROR) << "job store: " << status.message()
                   << "; trying again until it works";
      }
      if (writes && status.ok() && !health_.ok()) {
        LOG(INFO) << "job store: works again";
      }
      // Nothing is learnt from a batch that only asks.
      if (writes) health_ = status;
      if (!last || !queue_.empty()) continue;
    }
    if (!batch.empty()) {
      LOG(ERROR) << "job store: " << batch.size()
                 << " changes are lost: " << status.message();
    }
    return;
  }
}

absl::Status SqliteJobStore::Commit(std::deque<Entry>& batch) {
  const auto finish = [](Entry& entry, const absl::Status& status) {
    if (entry.answer) entry.answer(status);
    if (entry.stored) entry.stored();
  };
  if (CommitTogether(batch, batch.size()).ok()) {
    for (Entry& entry : batch) finish(entry, absl::OkStatus());
    batch.clear();
    return absl::OkStatus();
  }
  // Some change is bad or the disk is full: find out one by one, in order.
  absl::Status trouble;
  while (!batch.empty()) {
    Entry& first = batch.front();
    const absl::Status status = CommitTogether(batch, 1);
    trouble = IsBadChange(status) ? absl::OkStatus() : status;
    if (!trouble.ok() && !first.answer) break;
    if (!status.ok() && !first.answer) {
      LOG(ERROR) << "job store: dropped a change that can't be stored: "
                 << status.message();
    }
    finish(first, status);
    batch.pop_front();
  }
  // Whoever may be refused doesn't wait behind what can't be stored now.
  std::deque<Entry> kept;
  for (Entry& entry : batch) {
    if (entry.answer) {
      finish(entry, trouble);
    } else {
      kept.push_back(std::move(entry));
    }
  }
  batch.swap(kept);
  return trouble;
}

absl::Status SqliteJobStore::CommitTogether(const std::deque<Entry>& batch,
                                            size_t count) {
  bool any = false;
  for (size_t i = 0; i < count; ++i) any |= batch[i].has_change;
  if (!any) return absl::OkStatus();
  const absl::Time begin = absl::Now();
  absl::MutexLock lock(&database_mutex_);
  RETURN_IF_ERROR(database_->Execute("BEGIN IMMEDIATE"));
  absl::Status status;
  for (size_t i = 0; i < count && status.ok(); ++i) {
    if (batch[i].has_change) status = writer_->Apply(batch[i].change);
  }
  if (status.ok()) status = database_->Execute("COMMIT");
  if (!status.ok()) {
    // SQLite may have rolled back by itself; then this fails, which is fine.
    database_->Execute("ROLLBACK").IgnoreError();
    return status;
  }
  if (options_.on_commit) options_.on_commit(absl::Now() - begin);
  return absl::OkStatus();
}

}  // namespace lockstep
