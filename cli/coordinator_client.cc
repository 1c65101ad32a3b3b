#include "cli/coordinator_client.h"

#include <grpcpp/create_channel.h>

#include <algorithm>
#include <map>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "common/grpc_status.h"
#include "common/ids.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr absl::Duration kCallDeadline = absl::Seconds(15);
constexpr absl::Duration kStreamDeadline = absl::Minutes(10);
constexpr absl::Duration kFirstPause = absl::Milliseconds(50);
constexpr absl::Duration kLongestPause = absl::Seconds(1);
// A stream is silent as long as a job does nothing; a coordinator that answers
// nothing else either within this time is taken for gone.
constexpr absl::Duration kProbeInterval = absl::Seconds(10);
constexpr absl::Duration kProbeDeadline = absl::Seconds(5);

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // Also the longest that one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 3000);
  // A proxy of the environment is meant for the web.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Job reports and specs are small, but lists of jobs may be long.
  arguments.SetMaxReceiveMessageSize(256 << 20);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

void SetDeadline(grpc::ClientContext& context, absl::Duration duration) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + duration));
}

// Cancels a stream when the coordinator no longer answers other calls, so that
// a stopped host is noticed. Lives as long as the stream is read.
class StreamProbe {
 public:
  StreamProbe(v1::JobService::Stub& stub, grpc::ClientContext& stream)
      : thread_([this, &stub, &stream] {
          while (!done_.WaitFor(kProbeInterval)) {
            grpc::ClientContext context;
            SetDeadline(context, kProbeDeadline);
            StopToken::CallScope scope(done_, context);
            v1::ServerInfo info;
            const grpc::Status status =
                stub.GetServerInfo(&context, v1::GetServerInfoRequest(), &info);
            if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED &&
                !done_.stopped()) {
              stream.TryCancel();
            }
          }
        }) {}
  ~StreamProbe() {
    done_.Stop();
    thread_.join();
  }

 private:
  StopToken done_;
  std::thread thread_;
};

}  // namespace

CoordinatorClient::CoordinatorClient(Options options,
                                     std::unique_ptr<StopToken> own_stop)
    : options_(std::move(options)),
      own_stop_(std::move(own_stop)),
      stop_(options_.stop != nullptr ? *options_.stop : *own_stop_),
      stub_(v1::JobService::NewStub(MakeChannel(options_.address))) {}

absl::StatusOr<std::unique_ptr<CoordinatorClient>> CoordinatorClient::Connect(
    Options options) {
  std::unique_ptr<CoordinatorClient> client(
      new CoordinatorClient(std::move(options), std::make_unique<StopToken>()));
  const auto server = client->Call(&v1::JobService::Stub::GetServerInfo,
                                   v1::GetServerInfoRequest());
  // Some other program, or a proxy.
  if (server.status().code() == absl::StatusCode::kUnimplemented ||
      server.status().code() == absl::StatusCode::kUnknown ||
      server.status().code() == absl::StatusCode::kInternal) {
    return absl::UnavailableError(
        absl::StrCat("what answers at ", client->address(),
                     " is no coordinator: ", server.status().message()));
  }
  RETURN_IF_ERROR(server.status());
  client->server_ = *server;
  client->connected_ = true;
  return client;
}

absl::Status CoordinatorClient::Persist(
    absl::Duration patience,
    const std::function<absl::Status(bool& progressed)>& attempt) {
  absl::Time alive = absl::Now();
  absl::Duration pause = kFirstPause;
  std::string reason;
  while (true) {
    RETURN_IF_ERROR(stop_.Check());
    bool progressed = false;
    const absl::Status status = attempt(progressed);
    if (stop_.stopped()) return stop_.Check();
    // A call past its deadline is as good as a coordinator that is away.
    if (status.code() != absl::StatusCode::kUnavailable &&
        status.code() != absl::StatusCode::kDeadlineExceeded) {
      return status;
    }
    if (progressed) {
      alive = absl::Now();
      pause = kFirstPause;
      reason.clear();
    }
    // The first failure says more than those of waiting for it to be back.
    if (reason.empty()) reason = std::string(status.message());
    const absl::Duration left = patience - (absl::Now() - alive);
    if (left <= pause) {
      return absl::UnavailableError(absl::StrCat(
          "can't reach the coordinator at ", options_.address, ": ", reason));
    }
    stop_.WaitFor(pause);
    pause = std::min(pause * 2, kLongestPause);
    WaitUntilThere(left - pause);
  }
}

void CoordinatorClient::WaitUntilThere(absl::Duration timeout) {
  grpc::ClientContext context;
  // A call that waits also drives the channel's attempts to connect; calls that
  // fail at once don't.
  context.set_wait_for_ready(true);
  SetDeadline(context, timeout);
  StopToken::CallScope scope(stop_, context);
  v1::ServerInfo info;
  // Whatever it says: the caller tries again.
  (void)stub_->GetServerInfo(&context, v1::GetServerInfoRequest(), &info);
}

template <typename Request, typename Response>
absl::StatusOr<Response> CoordinatorClient::Call(
    grpc::Status (v1::JobService::Stub::*method)(grpc::ClientContext*,
                                                 const Request&, Response*),
    const Request& request) {
  Response response;
  const absl::Duration patience =
      connected_ ? options_.call_patience : options_.contact_patience;
  RETURN_IF_ERROR(Persist(patience, [&](bool&) {
    grpc::ClientContext context;
    SetDeadline(context,
                connected_ ? kCallDeadline : std::min(kCallDeadline, patience));
    StopToken::CallScope scope(stop_, context);
    return FromGrpcStatus((stub_.get()->*method)(&context, request, &response));
  }));
  return response;
}

absl::StatusOr<v1::SubmitResponse> CoordinatorClient::Submit(
    v1::SubmitRequest request) {
  constexpr int kIdCharacters = 26;
  request.set_request_id(RandomBase32(kIdCharacters));
  return Call(&v1::JobService::Stub::Submit, request);
}

absl::StatusOr<v1::JobInfo> CoordinatorClient::GetJob(const std::string& job) {
  v1::GetJobRequest request;
  request.set_job(job);
  return Call(&v1::JobService::Stub::GetJob, request);
}

absl::StatusOr<v1::ListJobsResponse> CoordinatorClient::ListJobs(bool all) {
  v1::ListJobsRequest request;
  request.set_all(all);
  return Call(&v1::JobService::Stub::ListJobs, request);
}

absl::StatusOr<v1::JobReport> CoordinatorClient::GetReport(
    const std::string& job) {
  v1::GetJobRequest request;
  request.set_job(job);
  return Call(&v1::JobService::Stub::GetReport, request);
}

absl::StatusOr<v1::JobInfo> CoordinatorClient::CancelJob(
    const std::string& job, const std::string& reason) {
  v1::CancelJobRequest request;
  request.set_job(job);
  request.set_reason(reason);
  return Call(&v1::JobService::Stub::CancelJob, request);
}

absl::StatusOr<v1::DeleteJobResponse> CoordinatorClient::DeleteJob(
    const std::string& job) {
  v1::GetJobRequest request;
  request.set_job(job);
  return Call(&v1::JobService::Stub::DeleteJob, request);
}

absl::StatusOr<v1::ListWorkersResponse> CoordinatorClient::ListWorkers() {
  return Call(&v1::JobService::Stub::ListWorkers, v1::ListWorkersRequest());
}

absl::StatusOr<v1::ListCheckpointsResponse> CoordinatorClient::ListCheckpoints(
    const std::string& job) {
  v1::GetJobRequest request;
  request.set_job(job);
  return Call(&v1::JobService::Stub::ListCheckpoints, request);
}

absl::StatusOr<v1::ListEventsResponse> CoordinatorClient::ListEvents(
    const std::string& job) {
  v1::GetJobRequest request;
  request.set_job(job);
  return Call(&v1::JobService::Stub::ListEvents, request);
}

absl::Status CoordinatorClient::GetSteps(
    const v1::GetStepsRequest& request,
    const std::function<void(const v1::StepReport&)>& sink) {
  v1::GetStepsRequest rest = request;
  return Persist(options_.call_patience, [&](bool& progressed) {
    grpc::ClientContext context;
    SetDeadline(context, kStreamDeadline);
    StopToken::CallScope scope(stop_, context);
    const auto stream = stub_->GetSteps(&context, rest);
    v1::StepReport step;
    while (stream->Read(&step)) {
      progressed = true;
      sink(step);
      rest.set_after_step(step.step());
    }
    return FromGrpcStatus(stream->Finish());
  });
}

absl::Status CoordinatorClient::GetLogs(
    const v1::GetLogsRequest& request,
    const std::function<void(const v1::LogLine&)>& sink) {
  // A name's newest job may be another one when the stream is opened again.
  v1::GetLogsRequest exact = request;
  ASSIGN_OR_RETURN(const v1::JobInfo job, GetJob(request.job()));
  exact.set_job(job.id());
  // Lines had of each rank; a new stream begins at the first line again.
  std::map<int64_t, int64_t> had;
  const absl::Duration patience =
      request.follow() ? options_.follow_patience : options_.call_patience;
  return Persist(patience, [&](bool& progressed) -> absl::Status {
    grpc::ClientContext context;
    if (!request.follow()) SetDeadline(context, kStreamDeadline);
    StopToken::CallScope scope(stop_, context);
    StreamProbe probe(*stub_, context);
    const auto stream = stub_->GetLogs(&context, exact);
    std::map<int64_t, int64_t> seen;
    v1::LogLine line;
    while (stream->Read(&line)) {
      progressed = true;
      if (++seen[line.rank()] <= had[line.rank()]) continue;
      ++had[line.rank()];
      sink(line);
    }
    absl::Status status = FromGrpcStatus(stream->Finish());
    // The probe's doing.
    if (status.code() == absl::StatusCode::kCancelled) {
      status = absl::UnavailableError("it stopped answering");
    }
    if (status.code() == absl::StatusCode::kUnavailable &&
        request.tail() != 0 && !had.empty()) {
      return absl::AbortedError(
          absl::StrCat("the stream of logs broke: ", status.message()));
    }
    return status;
  });
}

absl::StatusOr<v1::JobInfo> CoordinatorClient::Watch(
    const std::string& job,
    const std::function<bool(const v1::JobUpdate&)>& sink) {
  v1::WatchJobRequest request;
  request.set_job(job);
  std::optional<v1::JobInfo> last;
  bool left_early = false;
  RETURN_IF_ERROR(
      Persist(options_.follow_patience, [&](bool& progressed) -> absl::Status {
        grpc::ClientContext context;
        StopToken::CallScope scope(stop_, context);
        StreamProbe probe(*stub_, context);
        const auto stream = stub_->WatchJob(&context, request);
        v1::JobUpdate update;
        while (!left_early && stream->Read(&update)) {
          progressed = true;
          request.set_after_sequence(
              std::max(request.after_sequence(), update.sequence()));
          // From now on this very job, whatever its name means by then.
          if (update.has_job()) {
            last = update.job();
            request.set_job(update.job().id());
          } else if (update.has_event()) {
            request.set_job(update.event().job());
          }
          left_early = !sink(update);
        }
        if (left_early) {
          context.TryCancel();
          (void)stream->Finish();  // CANCELLED, as asked for.
          return absl::OkStatus();
        }
        const absl::Status status = FromGrpcStatus(stream->Finish());
        if (last.has_value() && IsEnded(last->state())) return absl::OkStatus();
        if (status.ok())
          return absl::UnavailableError("the stream ended early");
        if (status.code() == absl::StatusCode::kCancelled) {
          return absl::UnavailableError("it stopped answering");
        }
        return status;
      }));
  if (!last.has_value()) return GetJob(request.job());
  return *last;
}

}  // namespace lockstep
