// CoordinatorSession: the worker's line to the coordinator
// (WorkerService.Session).
//
// It opens the stream, says hello, waits for welcome, then sends heartbeats and
// what Send was given. A stream that ends is opened again, with growing waits,
// for as long as the object lives; what the coordinator has not acknowledged is
// sent again on it, once, in order. Ranks notice nothing of all this.
//
// Threads: Send and the questions may be called from any thread. The callbacks
// are called from the session's threads, never two at a time for one stream,
// and without a lock held; they must not wait for the coordinator.
#ifndef LOCKSTEP_WORKER_AGENT_COORDINATOR_SESSION_H_
#define LOCKSTEP_WORKER_AGENT_COORDINATOR_SESSION_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/metrics/registry.h"
#include "lockstep/v1/worker_service.pb.h"
#include "worker/agent/coordinator_channels.h"

namespace lockstep {

class CoordinatorSession {
 public:
  struct Options {
    CoordinatorChannels* channels = nullptr;  // must outlive the session
    Clock* clock = nullptr;                   // must outlive the session
    MetricsRegistry* metrics = nullptr;       // must outlive the session
    absl::Duration first_backoff = absl::Milliseconds(100);
    absl::Duration longest_backoff = absl::Seconds(3);
    // How long the coordinator may take to answer hello.
    absl::Duration welcome_timeout = absl::Seconds(10);
    // Seed of the backoff's jitter.
    uint64_t seed = 0;
    std::function<v1::WorkerHello()> hello;
    std::function<v1::Heartbeat()> heartbeat;
    // Every message but acknowledgements, in order.
    std::function<void(const v1::CoordinatorMessage&)> on_message;
  };

  static std::unique_ptr<CoordinatorSession> Start(Options options);
  // Ends the stream; what is not acknowledged is lost (see Flush).
  virtual ~CoordinatorSession() = default;

  // Gives the message the next sequence number and keeps it until it is
  // acknowledged. Never waits.
  virtual void Send(v1::WorkerMessage message) = 0;
  // Waits until all is acknowledged; DEADLINE_EXCEEDED says how many are not.
  virtual absl::Status Flush(absl::Duration timeout) = 0;
  // OK while a stream is open and welcomed; else UNAVAILABLE with the reason.
  virtual absl::Status Connected() const = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_COORDINATOR_SESSION_H_
