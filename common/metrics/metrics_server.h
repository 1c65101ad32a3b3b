// MetricsServer: a small HTTP server for /metrics, /healthz and /readyz.
//
// /healthz answers 200 while the process lives; /readyz answers 200 or 503 with
// the reason that `ready` gives. Two threads serve, one request a connection,
// with 5 s for reading and writing; the destructor stops them.
// Errors: UNAVAILABLE if the address can't be bound, with the reason.
#ifndef LOCKSTEP_COMMON_METRICS_METRICS_SERVER_H_
#define LOCKSTEP_COMMON_METRICS_METRICS_SERVER_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/address.h"
#include "common/metrics/registry.h"

namespace lockstep {

class MetricsServer {
 public:
  struct Options {
    // Port 0 picks a free one.
    Address address;
    // Must outlive the server.
    const MetricsRegistry* registry = nullptr;
    // Called for each scrape, before the text is made, to set gauges that are
    // only looked up. May be empty. Called from the server's threads.
    std::function<void()> collect;
    // OK when the daemon can do its work. Called from the server's threads.
    std::function<absl::Status()> ready;
  };

  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(Options options);
  virtual ~MetricsServer() = default;

  // Where it serves, with the real port.
  virtual const Address& address() const = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_METRICS_METRICS_SERVER_H_
