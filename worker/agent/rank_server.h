// RankServer: serves RankService to this worker's ranks, on a Unix socket in a
// folder that only this user can enter.
//
// Threads: starts its own; the destructor ends all sessions, which ends their
// ranks, and stops them.
#ifndef LOCKSTEP_WORKER_AGENT_RANK_SERVER_H_
#define LOCKSTEP_WORKER_AGENT_RANK_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/serial_loop.h"
#include "worker/agent/gang_table.h"
#include "worker/agent/store_proxy.h"

namespace lockstep {

class RankServer {
 public:
  struct Options {
    std::string socket_path;
    SerialLoop* loop = nullptr;   // on which the table lives; outlives this
    GangTable* table = nullptr;   // outlives this
    StoreProxy* store = nullptr;  // outlives this
  };

  // UNAVAILABLE if the socket can't be bound.
  static absl::StatusOr<std::unique_ptr<RankServer>> Start(Options options);
  virtual ~RankServer() = default;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_RANK_SERVER_H_
