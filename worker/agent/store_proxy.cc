#include "worker/agent/store_proxy.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/grpc_status.h"
#include "lockstep/v1/worker_service.grpc.pb.h"

namespace lockstep {
namespace {

constexpr absl::Duration kRetryInterval = absl::Milliseconds(200);
// The answer must be back before the caller's own deadline.
constexpr absl::Duration kHopTime = absl::Milliseconds(100);

// Calls `call(stub, context)` until it answers anything but UNAVAILABLE, or the
// caller's time is over.
template <typename Call>
absl::Status Pass(CoordinatorChannels& channels, Clock& clock,
                  const grpc::ServerContext& caller, Call call) {
  const auto deadline =
      caller.deadline() - absl::ToChronoMilliseconds(kHopTime);
  absl::Mutex mutex;
  for (;;) {
    const auto stub = v1::WorkerService::NewStub(channels.Current());
    grpc::ClientContext context;
    context.set_deadline(deadline);
    const absl::Status status = FromGrpcStatus(call(*stub, context));
    if (!absl::IsUnavailable(status)) return status;
    if (caller.IsCancelled()) return absl::CancelledError("the rank is gone");
    if (std::chrono::system_clock::now() >= deadline) {
      return absl::UnavailableError(
          absl::StrCat("the coordinator at ", channels.CurrentAddress(),
                       " stayed away: ", status.message()));
    }
    absl::MutexLock lock(&mutex);
    bool never = false;
    clock.WaitFor(mutex, absl::Condition(&never), kRetryInterval);
  }
}

}  // namespace

absl::Status StoreProxy::Set(const grpc::ServerContext& caller,
                             const v1::StoreSetRequest& request) {
  v1::StoreSetResponse response;
  return Pass(channels_, clock_, caller,
              [&](v1::WorkerService::Stub& stub, grpc::ClientContext& context) {
                return stub.StoreSet(&context, request, &response);
              });
}

absl::StatusOr<v1::StoreGetResponse> StoreProxy::Get(
    const grpc::ServerContext& caller, const v1::StoreGetRequest& request) {
  v1::StoreGetResponse response;
  const absl::Status status =
      Pass(channels_, clock_, caller,
           [&](v1::WorkerService::Stub& stub, grpc::ClientContext& context) {
             return stub.StoreGet(&context, request, &response);
           });
  if (status.ok()) return response;
  // The coordinator names the key that is missing. If it hasn't answered at
  // all, there are gRPC's own words, which name nothing.
  if (absl::IsDeadlineExceeded(status) && request.keys_size() > 0 &&
      status.message() == "Deadline Exceeded") {
    const int others = request.keys_size() - 1;
    return absl::DeadlineExceededError(absl::StrCat(
        "the coordinator at ", channels_.CurrentAddress(),
        " gave no answer in time for rendezvous key ",
        absl::CHexEscape(request.keys(0)), " and ", others, " others"));
  }
  return status;
}

}  // namespace lockstep
