#include "worker/agent/coordinator_session.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/grpc_status.h"
#include "common/log.h"
#include "lockstep/v1/worker_service.grpc.pb.h"
#include "worker/agent/backoff.h"
#include "worker/agent/outbox.h"

namespace lockstep {
namespace {

using Stream =
    grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>;

constexpr absl::Duration kDefaultHeartbeat = absl::Seconds(2);
constexpr absl::Duration kShortestHeartbeat = absl::Milliseconds(10);
constexpr absl::Duration kLongestHeartbeat = absl::Minutes(1);
// How long the coordinator may take to end the stream after we did.
constexpr absl::Duration kCloseTime = absl::Seconds(1);

class GrpcCoordinatorSession : public CoordinatorSession {
 public:
  explicit GrpcCoordinatorSession(Options options)
      : options_(std::move(options)),
        backoff_(options_.first_backoff, options_.longest_backoff,
                 options_.seed),
        thread_([this] { Run(); }) {}

  ~GrpcCoordinatorSession() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
      // A write to a coordinator that reads nothing would wait for ever.
      if (context_ != nullptr && !welcomed_) context_->TryCancel();
    }
    {
      absl::MutexLock lock(&mutex_);
      const auto closed = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return context_ == nullptr;
      };
      if (!options_.clock->WaitFor(mutex_, absl::Condition(&closed),
                                   kCloseTime) &&
          context_ != nullptr) {
        context_->TryCancel();
      }
    }
    thread_.join();
  }

  void Send(v1::WorkerMessage message) override {
    absl::MutexLock lock(&mutex_);
    outbox_.Add(std::move(message));
  }

  absl::Status Flush(absl::Duration timeout) override {
    absl::MutexLock lock(&mutex_);
    const auto empty = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return outbox_.size() == 0;
    };
    if (options_.clock->WaitFor(mutex_, absl::Condition(&empty), timeout)) {
      return absl::OkStatus();
    }
    return absl::DeadlineExceededError(absl::StrCat(
        outbox_.size(), " messages were not acknowledged by the coordinator"));
  }

  absl::Status Connected() const override {
    absl::MutexLock lock(&mutex_);
    if (welcomed_ && !broken_) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("no session with the coordinator at ",
                     options_.channels->CurrentAddress(),
                     last_error_.empty() ? "" : ": ", last_error_));
  }

 private:
  void Run() {
    for (;;) {
      {
        absl::MutexLock lock(&mutex_);
        if (stopping_) return;
      }
      const absl::Status status = RunStream();
      if (!AfterStream(status)) return;
    }
  }

  // Opens one stream and serves it until it ends.
  absl::Status RunStream() {
    grpc::ClientContext context;
    const auto stub = v1::WorkerService::NewStub(options_.channels->Current());
    {
      absl::MutexLock lock(&mutex_);
      context_ = &context;
      welcomed_ = false;
      broken_ = false;
      outbox_.Rewind();
    }
    const std::unique_ptr<Stream> stream = stub->Session(&context);
    v1::WorkerMessage hello;
    *hello.mutable_hello() = options_.hello();
    // A failed write shows in Finish below.
    const bool open = stream->Write(hello);
    std::thread reader([this, &stream] { Read(*stream); });
    absl::Status status = open ? AwaitWelcome() : absl::OkStatus();
    if (open && status.ok()) {
      WriteUntilBroken(*stream);
      stream->WritesDone();
    } else {
      context.TryCancel();
    }
    reader.join();
    const absl::Status finished = FromGrpcStatus(stream->Finish());
    {
      absl::MutexLock lock(&mutex_);
      context_ = nullptr;
      broken_ = true;
    }
    if (!status.ok()) return status;
    return finished.ok() ? absl::UnavailableError("the coordinator hung up")
                         : finished;
  }

  void Read(Stream& stream) {
    v1::CoordinatorMessage message;
    while (stream.Read(&message)) {
      if (message.message_case() ==
          v1::CoordinatorMessage::kAcknowledgedSequence) {
        absl::MutexLock lock(&mutex_);
        outbox_.Acknowledge(message.acknowledged_sequence());
        SetUnacknowledged();
        continue;
      }
      // Callbacks first: stale ranks are dealt with before heartbeats flow.
      options_.on_message(message);
      if (message.message_case() == v1::CoordinatorMessage::kWelcome) {
        absl::MutexLock lock(&mutex_);
        OnWelcome(message.welcome());
      }
    }
    absl::MutexLock lock(&mutex_);
    broken_ = true;
  }

  void OnWelcome(const v1::Welcome& welcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    absl::Duration interval =
        absl::Seconds(welcome.heartbeat_interval().seconds()) +
        absl::Nanoseconds(welcome.heartbeat_interval().nanos());
    if (interval <= absl::ZeroDuration()) interval = kDefaultHeartbeat;
    heartbeat_interval_ =
        std::clamp(interval, kShortestHeartbeat, kLongestHeartbeat);
    welcomed_ = true;
    last_error_.clear();
    LOG(INFO) << "connected to the coordinator at "
              << options_.channels->CurrentAddress() << ", version "
              << welcome.coordinator_version();
    if (const int64_t dropped = outbox_.TakeDropped(); dropped > 0) {
      LOG(WARNING) << dropped << " step reports were dropped while the "
                   << "coordinator was away: more than "
                   << (Outbox::kMostBytes >> 20) << " MiB waited for it";
    }
    options_.metrics->Set(metric_names::kWorkerConnected, {}, 1);
    options_.metrics->Increment(metric_names::kWorkerReconnects, {},
                                ever_welcomed_ ? 1 : 0);
    ever_welcomed_ = true;
  }

  absl::Status AwaitWelcome() {
    absl::MutexLock lock(&mutex_);
    const auto answered = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return welcomed_ || broken_ || stopping_;
    };
    if (!options_.clock->WaitFor(mutex_, absl::Condition(&answered),
                                 options_.welcome_timeout)) {
      return absl::DeadlineExceededError(
          absl::StrCat("the coordinator did not answer hello within ",
                       absl::FormatDuration(options_.welcome_timeout)));
    }
    return absl::OkStatus();
  }

  void WriteUntilBroken(Stream& stream) {
    absl::Duration heartbeat_at = options_.clock->Uptime();
    for (;;) {
      std::optional<v1::WorkerMessage> message;
      {
        absl::MutexLock lock(&mutex_);
        const auto wanted = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
          return broken_ || stopping_ || outbox_.has_unsent();
        };
        options_.clock->WaitFor(mutex_, absl::Condition(&wanted),
                                heartbeat_at - options_.clock->Uptime());
        if (broken_ || (stopping_ && !outbox_.has_unsent())) return;
        if (const v1::WorkerMessage* next = outbox_.NextUnsent()) {
          message = *next;
          SetUnacknowledged();
        }
      }
      if (message.has_value() && !stream.Write(*message)) return;
      if (options_.clock->Uptime() < heartbeat_at) continue;
      message.emplace();
      *message->mutable_heartbeat() = options_.heartbeat();
      if (!stream.Write(*message)) return;
      options_.metrics->Increment(metric_names::kWorkerHeartbeats, {});
      absl::MutexLock lock(&mutex_);
      heartbeat_at = options_.clock->Uptime() + heartbeat_interval_;
    }
  }

  // Waits before the next stream; false when there shall be none.
  bool AfterStream(const absl::Status& status) {
    options_.metrics->Set(metric_names::kWorkerConnected, {}, 0);
    absl::MutexLock lock(&mutex_);
    if (stopping_) return false;
    const std::string error(status.message());
    // One line per outage and reason, not one per attempt.
    if (welcomed_ || error != last_error_) {
      LOG(WARNING) << "session with the coordinator at "
                   << options_.channels->CurrentAddress() << ": " << status
                   << "; trying again";
    }
    last_error_ = error;
    if (welcomed_) backoff_.Reset();
    options_.channels->MoveOn();
    options_.clock->WaitFor(mutex_, absl::Condition(&stopping_),
                            backoff_.Next());
    return !stopping_;
  }

  void SetUnacknowledged() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    options_.metrics->Set(metric_names::kWorkerUnacknowledged, {},
                          static_cast<double>(outbox_.size()));
  }

  const Options options_;
  Backoff backoff_;  // the session thread's only
  mutable absl::Mutex mutex_;
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the stream that is open now, if any.
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool welcomed_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool ever_welcomed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration heartbeat_interval_ ABSL_GUARDED_BY(mutex_) =
      kDefaultHeartbeat;
  std::string last_error_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace

std::unique_ptr<CoordinatorSession> CoordinatorSession::Start(Options options) {
  return std::make_unique<GrpcCoordinatorSession>(std::move(options));
}

}  // namespace lockstep
