// StoreProxy: passes the rendezvous store on to the coordinator. While the
// coordinator is away it tries again, until the caller's deadline.
//
// Threads: all functions may be called from any thread; each call blocks until
// its deadline at most.
#ifndef LOCKSTEP_WORKER_AGENT_STORE_PROXY_H_
#define LOCKSTEP_WORKER_AGENT_STORE_PROXY_H_

#include <grpcpp/server_context.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "lockstep/v1/worker_service.pb.h"
#include "worker/agent/coordinator_channels.h"

namespace lockstep {

class StoreProxy {
 public:
  // Both must outlive the proxy.
  StoreProxy(CoordinatorChannels& channels, Clock& clock)
      : channels_(channels), clock_(clock) {}

  // `caller` is the call that is passed on: its deadline counts, and when it is
  // cancelled the proxy gives up. The coordinator's own error otherwise.
  absl::Status Set(const grpc::ServerContext& caller,
                   const v1::StoreSetRequest& request);
  absl::StatusOr<v1::StoreGetResponse> Get(const grpc::ServerContext& caller,
                                           const v1::StoreGetRequest& request);

 private:
  CoordinatorChannels& channels_;
  Clock& clock_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_STORE_PROXY_H_
