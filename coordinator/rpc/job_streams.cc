// The streaming calls of JobServiceImpl: watch, steps and logs.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "coordinator/jobs/log_reader.h"
#include "coordinator/rpc/job_service.h"
#include "coordinator/rpc/rpc_metrics.h"

namespace lockstep {
namespace {

// Each holds a thread.
constexpr int kMostStreams = 512;
constexpr int kUpdatesPerRead = 256;
// How often a stream with nothing to say looks whether its client is there.
constexpr absl::Duration kLookInterval = absl::Milliseconds(200);

absl::Status ClientGone() { return absl::CancelledError("the client is gone"); }

// Counts a stream while it lives.
class StreamSlot {
 public:
  explicit StreamSlot(std::atomic<int>& streams)
      : streams_(streams), number_(++streams) {}
  ~StreamSlot() { --streams_; }
  StreamSlot(const StreamSlot&) = delete;
  StreamSlot& operator=(const StreamSlot&) = delete;

  absl::Status Check() const {
    if (number_ <= kMostStreams) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("the coordinator has ", kMostStreams,
                     " open streams already; try again later"));
  }

 private:
  std::atomic<int>& streams_;
  const int number_;
};

}  // namespace

absl::Status JobServiceImpl::CheckOpen(
    const grpc::ServerContext& context) const {
  if (stopped_) return absl::UnavailableError("the coordinator stops");
  if (context.IsCancelled()) return ClientGone();
  return absl::OkStatus();
}

absl::Status JobServiceImpl::DoWatch(
    grpc::ServerContext& context, const v1::WatchJobRequest& request,
    grpc::ServerWriter<v1::JobUpdate>& writer) {
  const StreamSlot slot(streams_);
  RETURN_IF_ERROR(slot.Check());
  ASSIGN_OR_RETURN(const std::string id, deps_.jobs.Resolve(request.job()));
  ASSIGN_OR_RETURN(const auto history, deps_.jobs.History(id));
  // A number from before a power cut may be ahead of what is left.
  int64_t after = std::clamp<int64_t>(request.after_sequence(), 0,
                                      history->last_sequence());
  int64_t progress_version = 0;
  for (;;) {
    RETURN_IF_ERROR(CheckOpen(context));
    if (history->closed()) {
      return absl::NotFoundError(absl::StrCat("job ", id, " was deleted"));
    }
    // Asked before reading: what comes in between is seen next time.
    ASSIGN_OR_RETURN(const JobRecord job, deps_.jobs.Get(id));
    ASSIGN_OR_RETURN(const std::vector<v1::JobUpdate> updates,
                     history->Read(after, kUpdatesPerRead));
    for (const v1::JobUpdate& update : updates) {
      if (!writer.Write(update)) return ClientGone();
      after = update.sequence();
      if (update.has_job() && IsEnded(update.job().state())) {
        return absl::OkStatus();
      }
    }
    if (!updates.empty()) continue;
    if (IsEnded(job.state)) {
      // The client has seen its end, or a power cut took the record of it.
      v1::JobUpdate last;
      last.set_sequence(after);
      *last.mutable_job() = deps_.jobs.ToInfo(job);
      writer.Write(last);
      return absl::OkStatus();
    }
    const JobHistory::Progress progress = history->progress();
    if (progress.version > progress_version) {
      progress_version = progress.version;
      v1::JobUpdate update;
      update.set_sequence(after);
      *update.mutable_progress() = progress.progress;
      if (!writer.Write(update)) return ClientGone();
    }
    history->WaitForMore(after, progress_version, kLookInterval);
  }
}

grpc::Status JobServiceImpl::WatchJob(
    grpc::ServerContext* context, const v1::WatchJobRequest* request,
    grpc::ServerWriter<v1::JobUpdate>* writer) {
  return FinishRpc(deps_.metrics, "WatchJob",
                   DoWatch(*context, *request, *writer));
}

absl::Status JobServiceImpl::DoGetSteps(
    const v1::GetStepsRequest& request,
    grpc::ServerWriter<v1::StepReport>& writer) {
  const StreamSlot slot(streams_);
  RETURN_IF_ERROR(slot.Check());
  ASSIGN_OR_RETURN(const std::string id, deps_.jobs.Resolve(request.job()));
  ASSIGN_OR_RETURN(const auto history, deps_.jobs.History(id));
  ASSIGN_OR_RETURN(const std::vector<v1::StepReport> steps,
                   history->Steps(request.after_step()));
  for (const v1::StepReport& step : steps) {
    if (!writer.Write(step)) return ClientGone();
  }
  return absl::OkStatus();
}

grpc::Status JobServiceImpl::GetSteps(
    grpc::ServerContext* context, const v1::GetStepsRequest* request,
    grpc::ServerWriter<v1::StepReport>* writer) {
  return FinishRpc(deps_.metrics, "GetSteps", DoGetSteps(*request, *writer));
}

absl::Status JobServiceImpl::DoGetLogs(
    grpc::ServerContext& context, const v1::GetLogsRequest& request,
    grpc::ServerWriter<v1::LogLine>& writer) {
  const StreamSlot slot(streams_);
  RETURN_IF_ERROR(slot.Check());
  ASSIGN_OR_RETURN(const std::string id, deps_.jobs.Resolve(request.job()));
  ASSIGN_OR_RETURN(const auto history, deps_.jobs.History(id));
  std::optional<int64_t> rank;
  if (request.has_rank()) rank = request.rank();
  std::optional<LogReader> reader;
  for (;;) {
    RETURN_IF_ERROR(CheckOpen(context));
    // Asked before reading: a line before the end is never missed.
    ASSIGN_OR_RETURN(const JobRecord job, deps_.jobs.Get(id));
    if (!reader.has_value()) {
      const auto attempt = deps_.jobs.NewestAttempt(id);
      const int64_t generation = request.generation() > 0 ? request.generation()
                                 : attempt.has_value()    ? attempt->generation
                                                          : 0;
      if (generation > 0) {
        reader.emplace(
            absl::StrCat(deps_.jobs.JobFolder(id), "/logs/g", generation), rank,
            request.tail());
      }
    }
    std::vector<v1::LogLine> lines;
    if (reader.has_value()) lines = reader->Poll();
    for (const v1::LogLine& line : lines) {
      if (!writer.Write(line)) return ClientGone();
    }
    if (!lines.empty()) continue;
    if (!request.follow() || IsEnded(job.state)) break;
    history->WaitForMore(history->last_sequence(), history->progress().version,
                         kLookInterval);
  }
  if (!reader.has_value()) return absl::OkStatus();
  for (const v1::LogLine& line : reader->Finish()) {
    if (!writer.Write(line)) return ClientGone();
  }
  return absl::OkStatus();
}

grpc::Status JobServiceImpl::GetLogs(grpc::ServerContext* context,
                                     const v1::GetLogsRequest* request,
                                     grpc::ServerWriter<v1::LogLine>* writer) {
  return FinishRpc(deps_.metrics, "GetLogs",
                   DoGetLogs(*context, *request, *writer));
}

}  // namespace lockstep
