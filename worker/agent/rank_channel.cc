#include "worker/agent/rank_channel.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/sync_stream.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/grpc_status.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "lockstep/v1/worker_service.grpc.pb.h"

namespace lockstep {
namespace {

using Stream = grpc::ClientReaderWriter<v1::RankMessage, v1::RankControl>;

// Progress is sent at most this often; what is newer replaces what waits.
constexpr absl::Duration kProgressInterval = absl::Milliseconds(100);
// Set has no timeout of its own; a coordinator that is away longer than this
// fails the rank.
constexpr absl::Duration kSetTimeout = absl::Seconds(120);
// Added to a Get's timeout, so that the answer that names the missing key
// arrives before our own deadline.
constexpr absl::Duration kHopTime = absl::Milliseconds(500);

void SetDeadline(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoMicroseconds(timeout));
}

// The gang's store behind the worker's socket.
class ForwardedStore : public Store {
 public:
  ForwardedStore(std::shared_ptr<grpc::Channel> channel,
                 const v1::RankAssignment& assignment)
      : stub_(v1::RankService::NewStub(channel)),
        gang_(assignment.gang()),
        secret_(assignment.rendezvous_secret()) {}

  absl::Status Set(const std::string& key, const std::string& value) override {
    v1::StoreSetRequest request;
    *request.mutable_gang() = gang_;
    request.set_secret(secret_);
    request.set_key(key);
    request.set_value(value);
    grpc::ClientContext context;
    SetDeadline(context, kSetTimeout);
    v1::StoreSetResponse response;
    return FromGrpcStatus(stub_->StoreSet(&context, request, &response));
  }

  absl::StatusOr<std::vector<std::string>> Get(
      const std::vector<std::string>& keys, absl::Duration timeout) override {
    v1::StoreGetRequest request;
    *request.mutable_gang() = gang_;
    request.set_secret(secret_);
    for (const std::string& key : keys) request.add_keys(key);
    grpc::ClientContext context;
    SetDeadline(context, timeout + kHopTime);
    v1::StoreGetResponse response;
    RETURN_IF_ERROR(
        FromGrpcStatus(stub_->StoreGet(&context, request, &response)));
    if (response.values_size() != static_cast<int>(keys.size())) {
      return absl::InternalError(absl::StrCat("the store answered ",
                                              response.values_size(),
                                              " values, want ", keys.size()));
    }
    return std::vector<std::string>(response.values().begin(),
                                    response.values().end());
  }

 private:
  const std::unique_ptr<v1::RankService::Stub> stub_;
  const v1::GangId gang_;
  const std::string secret_;
};

class GrpcRankChannel : public RankChannel {
 public:
  GrpcRankChannel(std::shared_ptr<grpc::Channel> channel, std::string token,
                  v1::RankAssignment assignment)
      : token_(std::move(token)),
        assignment_(std::move(assignment)),
        store_(channel, assignment_),
        stub_(v1::RankService::NewStub(channel)),
        stream_(stub_->Session(&context_)),
        reader_([this] { Read(); }),
        writer_([this] { Write(); }) {}

  ~GrpcRankChannel() override {
    {
      absl::MutexLock lock(&mutex_);
      closing_ = true;
    }
    // A rank that drops its channel without a last word is about to exit.
    context_.TryCancel();
    writer_.join();
    reader_.join();
  }

  const v1::RankAssignment& assignment() const override { return assignment_; }
  Store& store() override { return store_; }

  void Report(v1::RankReport report) override {
    *report.mutable_gang() = assignment_.gang();
    report.set_rank(assignment_.rank());
    absl::MutexLock lock(&mutex_);
    if (report.has_step()) step_ = std::max(step_, report.step().step());
    v1::RankMessage& message = queue_.emplace_back();
    message.set_step(step_);
    *message.mutable_report() = std::move(report);
  }

  void SetProgress(int64_t step, v1::Progress progress) override {
    absl::MutexLock lock(&mutex_);
    step_ = std::max(step_, step);
    progress_ = std::move(progress);
  }

  int64_t committed_step() const override { return committed_step_; }

  absl::Status Finish(absl::Duration timeout) override {
    v1::RankMessage message;
    message.set_finished(true);
    return LastWord(std::move(message), timeout);
  }

  absl::Status Fail(v1::Cause cause, const std::string& text, bool secondary,
                    absl::Duration timeout) override {
    v1::RankMessage message;
    v1::RankFailure& failure = *message.mutable_failure();
    failure.set_cause(cause);
    failure.set_message(text);
    failure.set_secondary(secondary);
    return LastWord(std::move(message), timeout);
  }

 private:
  absl::Status LastWord(v1::RankMessage message, absl::Duration timeout) {
    absl::MutexLock lock(&mutex_);
    if (closing_) {
      return absl::FailedPreconditionError("the last word has been said");
    }
    message.set_step(step_);
    queue_.push_back(std::move(message));
    closing_ = true;
    const auto ended = [this]()
                           ABSL_NO_THREAD_SAFETY_ANALYSIS { return ended_; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&ended), timeout)) {
      return absl::DeadlineExceededError(
          absl::StrCat("the worker did not take the last word within ",
                       absl::FormatDuration(timeout)));
    }
    return end_status_;
  }

  // Sends what is queued, then the newest progress; after the last word it ends
  // our side of the stream.
  void Write() {
    v1::RankMessage hello;  // tells the worker whose stream this is
    hello.set_token(token_);
    if (!stream_->Write(hello)) return;
    absl::Time progress_due = absl::InfinitePast();
    for (;;) {
      v1::RankMessage message;
      {
        absl::MutexLock lock(&mutex_);
        const auto urgent = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
          return closing_ || ended_ || !queue_.empty();
        };
        const auto anything = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
          return urgent() || progress_.has_value();
        };
        mutex_.Await(absl::Condition(&anything));
        mutex_.AwaitWithDeadline(absl::Condition(&urgent), progress_due);
        if (ended_) return;
        if (!queue_.empty()) {
          message = std::move(queue_.front());
          queue_.pop_front();
        } else if (closing_) {
          break;
        } else {
          message.set_step(step_);
          *message.mutable_progress() = *std::move(progress_);
          progress_.reset();
          progress_due = absl::Now() + kProgressInterval;
        }
      }
      message.set_token(token_);
      if (!stream_->Write(message)) return;
    }
    stream_->WritesDone();
  }

  void Read() {
    v1::RankControl control;
    while (stream_->Read(&control)) {
      if (control.has_abort()) Die(control.abort());
      if (control.has_checkpoint_committed()) {
        const int64_t step = control.checkpoint_committed().step();
        int64_t seen = committed_step_;
        while (step > seen &&
               !committed_step_.compare_exchange_weak(seen, step)) {
        }
      }
    }
    const absl::Status status = FromGrpcStatus(stream_->Finish());
    absl::MutexLock lock(&mutex_);
    if (!closing_) {
      Die(absl::StrCat("the worker is gone: ", status.ToString()));
    }
    ended_ = true;
    end_status_ = status;
  }

  // The compute thread may be anywhere, inside a collective say: nothing of the
  // process is torn down.
  [[noreturn]] void Die(const std::string& reason) {
    LOG(ERROR) << "rank " << assignment_.rank() << " ends: " << reason;
    _exit(kRankExitAborted);
  }

  const std::string token_;
  const v1::RankAssignment assignment_;
  ForwardedStore store_;
  std::atomic<int64_t> committed_step_{0};
  mutable absl::Mutex mutex_;
  std::deque<v1::RankMessage> queue_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::Progress> progress_ ABSL_GUARDED_BY(mutex_);
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  // The last word is queued: the stream's end is no surprise any more.
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_status_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext context_;
  const std::unique_ptr<v1::RankService::Stub> stub_;
  const std::unique_ptr<Stream> stream_;
  std::thread reader_;
  std::thread writer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RankChannel>> RankChannel::Connect(
    const std::string& socket_path, const std::string& token,
    absl::Duration timeout) {
  const std::shared_ptr<grpc::Channel> channel = grpc::CreateChannel(
      absl::StrCat("unix:", socket_path), grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  SetDeadline(context, timeout);
  v1::GetAssignmentRequest request;
  request.set_token(token);
  v1::RankAssignment assignment;
  RETURN_IF_ERROR(
      FromGrpcStatus(v1::RankService::NewStub(channel)->GetAssignment(
          &context, request, &assignment)));
  return std::make_unique<GrpcRankChannel>(channel, token,
                                           std::move(assignment));
}

}  // namespace lockstep
