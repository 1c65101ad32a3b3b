#include "worker/agent/rank_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "lockstep/v1/worker_service.grpc.pb.h"
#include "worker/agent/control_queue.h"

namespace lockstep {
namespace {

class RankServiceImpl : public v1::RankService::Service {
 public:
  explicit RankServiceImpl(RankServer::Options options)
      : options_(std::move(options)) {}

  grpc::Status GetAssignment(grpc::ServerContext* context,
                             const v1::GetAssignmentRequest* request,
                             v1::RankAssignment* response) override {
    auto assignment = options_.loop->Run(
        [&] { return options_.table->Assignment(request->token()); });
    if (!assignment.ok()) return ToGrpcStatus(assignment.status());
    *response = *std::move(assignment);
    return grpc::Status::OK;
  }

  grpc::Status Session(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::RankControl, v1::RankMessage>* stream)
      override {
    v1::RankMessage message;
    if (!stream->Read(&message)) return grpc::Status::OK;
    const std::string token = message.token();
    auto control = std::make_shared<ControlQueue>();
    const absl::Status opened = options_.loop->Run(
        [&] { return options_.table->OpenSession(token, control); });
    if (!opened.ok()) return ToGrpcStatus(opened);
    std::thread writer([&] {
      while (std::optional<v1::RankControl> next = control->Pop()) {
        if (!stream->Write(*next)) return;
      }
    });
    do {
      options_.loop->Post([table = options_.table, token, message] {
        table->OnRankMessage(token, message);
      });
    } while (stream->Read(&message));
    control->Close();
    writer.join();
    // After all that the rank has said. When the rank sees the stream's end,
    // everything has reached the table.
    options_.loop->Run([&] { options_.table->CloseSession(token); });
    return grpc::Status::OK;
  }

  grpc::Status StoreSet(grpc::ServerContext* context,
                        const v1::StoreSetRequest* request,
                        v1::StoreSetResponse* response) override {
    return ToGrpcStatus(options_.store->Set(*context, *request));
  }

  grpc::Status StoreGet(grpc::ServerContext* context,
                        const v1::StoreGetRequest* request,
                        v1::StoreGetResponse* response) override {
    auto got = options_.store->Get(*context, *request);
    if (!got.ok()) return ToGrpcStatus(got.status());
    *response = *std::move(got);
    return grpc::Status::OK;
  }

 private:
  const RankServer::Options options_;
};

class GrpcRankServer : public RankServer {
 public:
  explicit GrpcRankServer(Options options) : service_(options) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("unix:", options.socket_path),
                             grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }

  ~GrpcRankServer() override {
    if (server_ == nullptr) return;
    // At once: whoever stops the server has stopped the ranks before.
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  bool serving() const { return server_ != nullptr; }

 private:
  RankServiceImpl service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RankServer>> RankServer::Start(Options options) {
  const std::string path = options.socket_path;
  auto server = std::make_unique<GrpcRankServer>(std::move(options));
  if (!server->serving()) {
    return absl::UnavailableError(
        absl::StrCat("can't listen on the Unix socket ", path));
  }
  return server;
}

}  // namespace lockstep
