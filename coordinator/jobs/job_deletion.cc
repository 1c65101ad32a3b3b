// How a JobTable deletes jobs.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "coordinator/jobs/job_table.h"

namespace lockstep {
namespace {

// In the folder of a job that is being deleted, so that a crash between its
// row's end and its folder's leaves no folder for ever. No mark, no removal:
// the store may be a new one, on an old job root.
constexpr char kDeletionMark[] = ".deleted";

}  // namespace

std::string JobTable::DeletionMark(const std::string& id) const {
  return absl::StrCat(JobFolder(id), "/", kDeletionMark);
}

void JobTable::EndDeletions() {
  std::error_code error;
  std::filesystem::directory_iterator entries(options_.job_root, error);
  std::vector<std::string> marked;
  while (!error && entries != std::filesystem::directory_iterator()) {
    std::string id = entries->path().filename().string();
    std::error_code ignored;
    if (std::filesystem::exists(DeletionMark(id), ignored)) {
      marked.push_back(std::move(id));
    }
    entries.increment(error);
  }
  for (const std::string& id : marked) {
    bool is_job = false;
    {
      absl::MutexLock lock(&mutex_);
      if (deleting_.count(id) > 0) continue;
      is_job = jobs_.count(id) > 0;
    }
    // A job whose deletion never reached the store goes on.
    if (is_job) {
      std::filesystem::remove(DeletionMark(id), error);
    } else {
      std::filesystem::remove_all(JobFolder(id), error);
    }
    if (!error) continue;
    LOG(WARNING) << "job " << id
                 << ": a deletion can't be ended: " << error.message();
  }
}

absl::Status JobTable::Delete(const std::string& id, absl::Duration timeout) {
  // Shared with the store's thread, which may answer after we gave up.
  struct Deleting {
    absl::Notification done;
    absl::Status status;
  };
  auto deleting = std::make_shared<Deleting>();
  {
    absl::MutexLock lock(&mutex_);
    ASSIGN_OR_RETURN(const Entry* entry, Find(id));
    if (!IsEnded(entry->record.state)) {
      return absl::FailedPreconditionError(
          absl::StrCat("job ", id, " is ", JobStateWord(entry->record.state),
                       ": cancel it first"));
    }
    for (const CheckpointRecord& checkpoint : entry->checkpoints) {
      if (!IsUsedByLiveJob(checkpoint)) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("job ", id, ": a live job starts from its checkpoint ",
                       checkpoint.path));
    }
    if (!deleting_.insert(id).second) {
      return absl::FailedPreconditionError(
          absl::StrCat("job ", id, " is being deleted"));
    }
  }
  // As good as possible: a full disk takes none, and deleting makes room.
  std::ofstream(DeletionMark(id)).flush();
  StoreChange change;
  change.deleted_jobs.push_back(id);
  store_.Write(std::move(change), [this, id, deleting](absl::Status status) {
    {
      absl::MutexLock lock(&mutex_);
      const auto found = jobs_.find(id);
      if (status.ok() && found != jobs_.end()) {
        if (found->second.history != nullptr) found->second.history->Close();
        by_request_.erase(found->second.record.request_id);
        jobs_.erase(found);
      }
      deleting_.erase(id);
    }
    deleting->status = std::move(status);
    deleting->done.Notify();
  });
  if (!deleting->done.WaitForNotificationWithTimeout(timeout)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "job ", id, ": not stored within ", absl::FormatDuration(timeout)));
  }
  std::error_code error;
  if (!deleting->status.ok()) {
    std::filesystem::remove(DeletionMark(id), error);
    return deleting->status;
  }
  std::filesystem::remove_all(JobFolder(id), error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("job ", id, " is deleted, but its folder ", JobFolder(id),
                     " can't be: ", error.message()));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
