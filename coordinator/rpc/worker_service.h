// WorkerService over gRPC: sessions of workers, and the rendezvous store.
//
// Threads: gRPC's, one per call. Sessions and waiting StoreGets block theirs;
// each kind has a limit of its own, so that a large gang that meets can't keep
// a worker's session out.
#ifndef LOCKSTEP_COORDINATOR_RPC_WORKER_SERVICE_H_
#define LOCKSTEP_COORDINATOR_RPC_WORKER_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "common/metrics/registry.h"
#include "common/serial_loop.h"
#include "coordinator/launch/gang_supervisor.h"
#include "coordinator/launch/rendezvous_store.h"
#include "coordinator/rpc/stream_connection.h"
#include "coordinator/store/job_store.h"
#include "lockstep/v1/worker_service.grpc.pb.h"

namespace lockstep {

class WorkerServiceImpl final : public v1::WorkerService::Service {
 public:
  struct Deps {
    // Lives on `loop`.
    GangSupervisor& supervisor;
    SerialLoop& loop;
    RendezvousStore& rendezvous;
    JobStore& store;
    MetricsRegistry& metrics;
  };
  explicit WorkerServiceImpl(Deps deps);

  grpc::Status Session(grpc::ServerContext* context,
                       StreamConnection::Stream* stream) override;
  grpc::Status StoreSet(grpc::ServerContext* context,
                        const v1::StoreSetRequest* request,
                        v1::StoreSetResponse* response) override;
  grpc::Status StoreGet(grpc::ServerContext* context,
                        const v1::StoreGetRequest* request,
                        v1::StoreGetResponse* response) override;

 private:
  absl::Status DoSession(grpc::ServerContext& context,
                         StreamConnection::Stream& stream);
  absl::Status DoStoreGet(grpc::ServerContext& context,
                          const v1::StoreGetRequest& request,
                          v1::StoreGetResponse& response);

  const Deps deps_;
  std::atomic<int> sessions_{0};
  std::atomic<int> waiting_gets_{0};
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_RPC_WORKER_SERVICE_H_
