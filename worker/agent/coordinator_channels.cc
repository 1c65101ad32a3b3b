#include "worker/agent/coordinator_channels.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "absl/time/time.h"

namespace lockstep {
namespace {

constexpr absl::Duration kMinReconnect = absl::Milliseconds(100);
constexpr absl::Duration kMaxReconnect = absl::Seconds(2);
// A coordinator's host that is gone acknowledges nothing: the kernel gives the
// connection up after this time (TCP_USER_TIMEOUT, which gRPC sets with its
// keep-alive). Heartbeats are traffic enough; pings come so seldom that no
// server takes them amiss.
constexpr absl::Duration kUserTimeout = absl::Seconds(20);
constexpr absl::Duration kPingInterval = absl::Minutes(10);

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

}  // namespace

CoordinatorChannels::CoordinatorChannels(const std::vector<Address>& addresses)
    : addresses_(addresses) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   Milliseconds(kMinReconnect));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   Milliseconds(kMaxReconnect));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kPingInterval));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kUserTimeout));
  // The cluster's own network: never through a web proxy.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  for (const Address& address : addresses_) {
    channels_.push_back(grpc::CreateCustomChannel(
        address.ToString(), grpc::InsecureChannelCredentials(), arguments));
  }
}

}  // namespace lockstep
