#include "coordinator/rpc/rpc_metrics.h"

#include "common/grpc_status.h"

namespace lockstep {

grpc::Status FinishRpc(MetricsRegistry& metrics, const std::string& method,
                       const absl::Status& status) {
  metrics.Increment(
      metric_names::kRpcs,
      {{"method", method}, {"code", absl::StatusCodeToString(status.code())}});
  return ToGrpcStatus(status);
}

}  // namespace lockstep
