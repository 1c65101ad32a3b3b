#include "worker/train/gang_data.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "worker/train/failure.h"

namespace lockstep {
namespace {

// Key under which rank 0 publishes the cache's directory and digest.
constexpr char kDirectoryKey[] = "data/directory";
constexpr char kDigestKey[] = "data/digest";
// How long to wait before telling the worker again that we wait.
constexpr absl::Duration kWaitSlice = absl::Seconds(2);

void SetPhase(const RankContext& context, std::string_view phase,
              std::optional<double> fraction) {
  v1::Progress progress;
  progress.set_phase(std::string(phase));
  if (fraction.has_value()) progress.set_fraction(*fraction);
  context.reporter.SetProgress(0, progress);
}

// Rank 0's part. If it fails the gang ends by its failure report.
absl::StatusOr<std::string> MakeCache(const RankContext& context,
                                      const v1::RankAssignment& assignment) {
  absl::StatusOr<std::string> directory =
      PrepareCache(DataOptionsOf(context, assignment));
  if (directory.status().code() == absl::StatusCode::kResourceExhausted) {
    return WithCause(directory.status(), v1::CAUSE_DISK_FULL);
  }
  return directory;
}

absl::StatusOr<std::vector<std::string>> WaitForCache(
    const RankContext& context, Store& store) {
  while (true) {
    SetPhase(context, "tokenizing", std::nullopt);
    absl::StatusOr<std::vector<std::string>> values =
        store.Get({kDirectoryKey, kDigestKey}, kWaitSlice);
    // Tokenizing may take hours: rank 0's own progress bounds the wait.
    if (values.status().code() != absl::StatusCode::kDeadlineExceeded) {
      return values;
    }
  }
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

absl::StatusOr<std::unique_ptr<PreparedData>> OpenGangData(
    const RankContext& context, const v1::RankAssignment& assignment,
    Store& store) {
  if (context.speaks()) {
    ASSIGN_OR_RETURN(const std::string directory,
                     MakeCache(context, assignment));
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

}  // namespace lockstep
