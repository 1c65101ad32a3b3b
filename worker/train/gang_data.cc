#include "worker/train/gang_data.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/status_macros.h"
#include "worker/train/failure.h"

namespace lockstep {
namespace {

// Key under which rank 0 publishes the cache's directory and digest.
constexpr char kDirectoryKey[] = "data/directory";
constexpr char kDigestKey[] = "data/digest";
// How long to wait before telling the worker again that we wait.
constexpr absl::Duration kWaitSlice = absl::Seconds(2);
// How long to wait before asking a store again that isn't there.
constexpr absl::Duration kRetryInterval = absl::Milliseconds(100);

void SetPhase(const RankContext& context, std::string_view phase,
              std::optional<double> fraction) {
  v1::Progress progress;
  progress.set_phase(std::string(phase));
  if (fraction.has_value()) progress.set_fraction(*fraction);
  context.reporter.SetProgress(0, progress);
}

void Pause(Clock& clock, absl::Duration time) {
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  bool never = false;
  clock.WaitFor(mutex, absl::Condition(&never), time);
}

absl::StatusOr<std::vector<std::string>> WaitForCache(
    const RankContext& context, Store& store) {
  while (true) {
    SetPhase(context, "tokenizing", std::nullopt);
    absl::StatusOr<std::vector<std::string>> values =
        store.Get({kDirectoryKey, kDigestKey}, kWaitSlice);
    // Tokenizing may take hours: rank 0's own progress bounds the wait. And the
    // coordinator may go away meanwhile; without a worker this process ends.
    if (absl::IsUnavailable(values.status())) {
      Pause(context.clock, kRetryInterval);
    } else if (!absl::IsDeadlineExceeded(values.status())) {
      return values;
    }
  }
}

absl::StatusOr<std::unique_ptr<PreparedData>> Open(
    const RankContext& context, const v1::RankAssignment& assignment,
    Store& store) {
  // If rank 0 fails the gang ends by its failure report.
  if (context.speaks()) {
    ASSIGN_OR_RETURN(const std::string directory,
                     PrepareCache(DataOptionsOf(context, assignment)));
    ASSIGN_OR_RETURN(std::unique_ptr<PreparedData> data,
                     PreparedData::Open(directory, assignment.spec(),
                                        assignment.data_root()));
    RETURN_IF_ERROR(store.Set(kDirectoryKey, directory));
    RETURN_IF_ERROR(store.Set(kDigestKey, data->digest()));
    return data;
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> published,
                   WaitForCache(context, store));
  ASSIGN_OR_RETURN(std::unique_ptr<PreparedData> data,
                   PreparedData::Open(published[0], assignment.spec(),
                                      assignment.data_root()));
  if (data->digest() != published[1]) {
    return absl::FailedPreconditionError(absl::StrCat(
        "worker ", assignment.worker(), " sees other data than rank 0: its ",
        "token cache ", published[0], " has digest ", data->digest(),
        ", rank 0's has ", published[1]));
  }
  return data;
}

}  // namespace

DataOptions DataOptionsOf(const RankContext& context,
                          const v1::RankAssignment& assignment) {
  DataOptions options;
  options.spec = assignment.spec();
  options.data_root = assignment.data_root();
  options.cache_dir = assignment.cache_dir();
  options.progress = [&context](std::string_view phase, double fraction) {
    SetPhase(context, phase, fraction);
  };
  options.warn = [&context](std::string_view text) {
    v1::RankReport report;
    report.set_warning(std::string(text));
    context.reporter.Report(std::move(report));
  };
  return options;
}

absl::Status DataCause(absl::Status status) {
  if (!absl::IsDataLoss(status)) return status;
  return WithCause(std::move(status), v1::CAUSE_USER_ERROR);
}

absl::StatusOr<std::unique_ptr<PreparedData>> OpenGangData(
    const RankContext& context, const v1::RankAssignment& assignment,
    Store& store) {
  absl::StatusOr<std::unique_ptr<PreparedData>> data =
      Open(context, assignment, store);
  if (!data.ok()) return DataCause(data.status());
  return data;
}

}  // namespace lockstep
