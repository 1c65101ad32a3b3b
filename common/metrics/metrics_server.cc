#include "common/metrics/metrics_server.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "httplib.h"

namespace lockstep {
namespace {

constexpr int kThreads = 2;
constexpr time_t kTimeoutSeconds = 5;
constexpr size_t kMaxPayloadBytes = 4096;

class HttplibMetricsServer : public MetricsServer {
 public:
  explicit HttplibMetricsServer(Options options)
      : options_(std::move(options)), address_(options_.address) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_keep_alive_max_count(1);
    server_.set_read_timeout(kTimeoutSeconds);
    server_.set_write_timeout(kTimeoutSeconds);
    server_.set_payload_max_length(kMaxPayloadBytes);
    // The library's default lets two processes share a port: a port in use
    // must be an error.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    server_.Get("/metrics", [this](const httplib::Request&,
                                   httplib::Response& response) {
      if (options_.collect) options_.collect();
      response.set_content(options_.registry->Text(),
                           "text/plain; version=0.0.4; charset=utf-8");
    });
    server_.Get("/healthz",
                [](const httplib::Request&, httplib::Response& response) {
                  response.set_content("ok\n", "text/plain");
                });
    server_.Get("/readyz", [this](const httplib::Request&,
                                  httplib::Response& response) {
      const absl::Status ready =
          options_.ready ? options_.ready() : absl::OkStatus();
      if (ready.ok()) {
        response.set_content("ok\n", "text/plain");
        return;
      }
      response.status = 503;
      response.set_content(absl::StrCat(ready.message(), "\n"), "text/plain");
    });
  }

  ~HttplibMetricsServer() override {
    if (!thread_.joinable()) return;
    server_.stop();
    thread_.join();
  }

  absl::Status Listen() {
    errno = 0;
    const bool bound =
        address_.port == 0
            ? (address_.port = server_.bind_to_any_port(address_.host)) > 0
            : server_.bind_to_port(address_.host, address_.port);
    if (!bound) {
      return absl::UnavailableError(absl::StrCat(
          "can't listen on ", options_.address.ToString(), ": ",
          errno != 0 ? std::strerror(errno) : "the host can't be resolved"));
    }
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    // stop() is lost on a server that has not begun to accept.
    while (!server_.is_running()) std::this_thread::yield();
    return absl::OkStatus();
  }

  const Address& address() const override { return address_; }

 private:
  const Options options_;
  Address address_;  // constant after Listen
  httplib::Server server_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    Options options) {
  auto server = std::make_unique<HttplibMetricsServer>(std::move(options));
  if (absl::Status status = server->Listen(); !status.ok()) return status;
  return server;
}

}  // namespace lockstep
