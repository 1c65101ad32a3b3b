// Counts RPCs by method and outcome, and turns Statuses into gRPC's.
#ifndef LOCKSTEP_COORDINATOR_RPC_RPC_METRICS_H_
#define LOCKSTEP_COORDINATOR_RPC_RPC_METRICS_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "common/metrics/registry.h"

namespace lockstep {

// Ends an RPC: counts it under `method` and gives what gRPC wants.
grpc::Status FinishRpc(MetricsRegistry& metrics, const std::string& method,
                       const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_RPC_RPC_METRICS_H_
