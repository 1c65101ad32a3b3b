#include "coordinator/rpc/worker_service.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/status_macros.h"
#include "coordinator/rpc/rpc_metrics.h"

namespace lockstep {
namespace {

constexpr int kMostSessions = 512;
constexpr int kMostWaitingGets = 1024;
// For a StoreGet whose caller sets no deadline, and the most that counts.
constexpr absl::Duration kMostGetTimeout = absl::Minutes(10);
// Of the caller's time, for our answer: it names the key that is missing, which
// gRPC's own at the deadline doesn't.
constexpr absl::Duration kAnswerTime = absl::Milliseconds(200);
constexpr absl::Duration kStoreTimeout = absl::Seconds(8);

// Takes one of a limited number of places while it lives.
class Place {
 public:
  explicit Place(std::atomic<int>& taken) : taken_(taken), number_(++taken) {}
  ~Place() { --taken_; }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  bool IsWithin(int limit) const { return number_ <= limit; }

 private:
  std::atomic<int>& taken_;
  const int number_;
};

}  // namespace

WorkerServiceImpl::WorkerServiceImpl(Deps deps) : deps_(std::move(deps)) {}

absl::Status WorkerServiceImpl::DoSession(grpc::ServerContext& context,
                                          StreamConnection::Stream& stream) {
  const Place place(sessions_);
  if (!place.IsWithin(kMostSessions)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the coordinator has ", kMostSessions, " worker sessions already"));
  }
  v1::WorkerMessage hello;
  if (!stream.Read(&hello)) return absl::OkStatus();
  if (!hello.has_hello()) {
    return absl::InvalidArgumentError(
        "a session's first message must be hello");
  }
  const WorkerLife life{hello.hello().name(), hello.hello().incarnation()};
  const auto connection = std::make_shared<StreamConnection>(context, stream);
  v1::CoordinatorMessage first;
  ASSIGN_OR_RETURN(*first.mutable_welcome(), deps_.loop.Run([&] {
    return deps_.supervisor.OnHello(hello.hello(), connection);
  }));
  const absl::Status status =
      connection->Serve(first, [&](const v1::WorkerMessage& message) {
        deps_.loop.Run(
            [&] { deps_.supervisor.OnMessage(life, connection, message); });
      });
  deps_.loop.Run(
      [&] { deps_.supervisor.OnDisconnect(life, connection.get()); });
  return status;
}

grpc::Status WorkerServiceImpl::Session(grpc::ServerContext* context,
                                        StreamConnection::Stream* stream) {
  return FinishRpc(deps_.metrics, "Session", DoSession(*context, *stream));
}

grpc::Status WorkerServiceImpl::StoreSet(grpc::ServerContext* context,
                                         const v1::StoreSetRequest* request,
                                         v1::StoreSetResponse* response) {
  absl::Status status = deps_.rendezvous.Set(request->gang(), request->secret(),
                                             request->key(), request->value());
  if (status.ok()) {
    // The worker sends it again until it is durable, whatever the store's
    // trouble is.
    const absl::Status stored = deps_.store.WaitUntilStored(kStoreTimeout);
    if (!stored.ok()) status = absl::UnavailableError(stored.message());
  }
  return FinishRpc(deps_.metrics, "StoreSet", status);
}

absl::Status WorkerServiceImpl::DoStoreGet(grpc::ServerContext& context,
                                           const v1::StoreGetRequest& request,
                                           v1::StoreGetResponse& response) {
  const Place place(waiting_gets_);
  if (!place.IsWithin(kMostWaitingGets)) {
    return absl::UnavailableError(
        absl::StrCat("the coordinator has ", kMostWaitingGets,
                     " waiting StoreGets already; try again"));
  }
  const absl::Duration left =
      absl::FromChrono(context.deadline()) - absl::Now();
  const std::vector<std::string> keys(request.keys().begin(),
                                      request.keys().end());
  ASSIGN_OR_RETURN(
      std::vector<std::string> values,
      deps_.rendezvous.Get(
          request.gang(), request.secret(), keys,
          std::min(std::max(left - kAnswerTime, left / 2), kMostGetTimeout),
          [&context] { return context.IsCancelled(); }));
  for (std::string& value : values) response.add_values(std::move(value));
  return absl::OkStatus();
}

grpc::Status WorkerServiceImpl::StoreGet(grpc::ServerContext* context,
                                         const v1::StoreGetRequest* request,
                                         v1::StoreGetResponse* response) {
  return FinishRpc(deps_.metrics, "StoreGet",
                   DoStoreGet(*context, *request, *response));
}

}  // namespace lockstep
