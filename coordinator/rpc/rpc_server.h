// RpcServer: the coordinator's gRPC port, with health and reflection services.
#ifndef LOCKSTEP_COORDINATOR_RPC_RPC_SERVER_H_
#define LOCKSTEP_COORDINATOR_RPC_RPC_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/address.h"

namespace lockstep {

class RpcServer {
 public:
  // Serves `services`, which must outlive it, without TLS. Port 0 picks one.
  // UNAVAILABLE: the address is in use or not ours.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const Address& listen, const std::vector<grpc::Service*>& services);
  // Ends all calls and waits for their handlers.
  ~RpcServer();

  // With the real port.
  const Address& address() const { return address_; }

 private:
  RpcServer(std::unique_ptr<grpc::Server> server, Address address);

  const std::unique_ptr<grpc::Server> server_;
  const Address address_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_RPC_RPC_SERVER_H_
