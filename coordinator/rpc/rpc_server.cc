#include "coordinator/rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr int kMostMessageBytes = 16 << 20;
// One per open call: sessions, waiting StoreGets and streams have limits of
// their own that add up to less.
constexpr int kMostThreads = 4096;
constexpr int kKeepaliveMillis = 10'000;
// Calls get as long to end by themselves.
constexpr auto kShutdownGrace = std::chrono::milliseconds(100);

// gRPC doesn't say why it can't listen, so try it first.
absl::Status CheckBindable(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(),
                  &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(absl::StrCat(
        "can't listen on ", address.ToString(), ": ", gai_strerror(error)));
  }
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                           &freeaddrinfo);
  const int file = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  // As gRPC does, so that connections in TIME_WAIT don't matter.
  setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool bound = bind(file, found->ai_addr, found->ai_addrlen) == 0 &&
                     listen(file, 1) == 0;
  const int bind_error = errno;
  close(file);
  if (bound) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "can't listen on ", address.ToString(), ": ", strerror(bind_error)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const Address& listen, const std::vector<grpc::Service*>& services) {
  RETURN_IF_ERROR(CheckBindable(listen));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(listen.ToString(), grpc::InsecureServerCredentials(),
                           &port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  builder.SetMaxSendMessageSize(kMostMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Notices hosts that went without a word; workers may ask as often.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMillis);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      kKeepaliveMillis / 4);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  grpc::ResourceQuota quota("coordinator");
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::UnavailableError(absl::StrCat(
        "can't listen on ", listen.ToString(), ": the address is in use"));
  }
  return std::unique_ptr<RpcServer>(
      new RpcServer(std::move(server), Address{listen.host, port}));
}

RpcServer::RpcServer(std::unique_ptr<grpc::Server> server, Address address)
    : server_(std::move(server)), address_(std::move(address)) {}

RpcServer::~RpcServer() {
  server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  server_->Wait();
}

}  // namespace lockstep
