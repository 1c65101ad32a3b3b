// RankChannel: a rank's line to its worker, over the worker's Unix socket.
//
// When the worker says abort, or is gone, the process logs the reason and ends
// by _exit from the channel's own thread, whatever its compute thread does: a
// rank never outlives its worker and never waits out a dead peer's timeout.
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_WORKER_AGENT_RANK_CHANNEL_H_
#define LOCKSTEP_WORKER_AGENT_RANK_CHANNEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/v1/worker_service.pb.h"
#include "worker/dist/store.h"

namespace lockstep {

// Exit codes of lockstep-rank, for its worker.
inline constexpr int kRankExitDone = 0;
inline constexpr int kRankExitFailed = 1;   // a RankFailure was sent
inline constexpr int kRankExitAborted = 3;  // told to, or its worker is gone

// Environment variables in which a worker gives its rank the two arguments of
// Connect.
inline constexpr char kRankSocketVariable[] = "LOCKSTEP_RANK_SOCKET";
inline constexpr char kRankTokenVariable[] = "LOCKSTEP_RANK_TOKEN";

class RankChannel {
 public:
  // Connects, fetches the assignment and opens the session.
  static absl::StatusOr<std::unique_ptr<RankChannel>> Connect(
      const std::string& socket_path, const std::string& token,
      absl::Duration timeout);
  virtual ~RankChannel() = default;

  virtual const v1::RankAssignment& assignment() const = 0;
  // The gang's rendezvous store, passed on to the coordinator; retries while
  // the coordinator is away, until the timeout.
  virtual Store& store() = 0;

  // Queues a report that is kept; gang and rank are filled in. Never blocks on
  // the network.
  virtual void Report(v1::RankReport report) = 0;
  // Latest progress and step, for heartbeats and hang detection.
  virtual void SetProgress(int64_t step, v1::Progress progress) = 0;
  // Highest step whose checkpoint the coordinator has committed; 0 for none.
  virtual int64_t committed_step() const = 0;

  // Sends the last word and waits until the worker has it. The process should
  // then exit, with kRankExitDone or kRankExitFailed.
  virtual absl::Status Finish(absl::Duration timeout) = 0;
  virtual absl::Status Fail(v1::Cause cause, const std::string& message,
                            bool secondary, absl::Duration timeout) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_RANK_CHANNEL_H_
