// RankLauncher: starts lockstep-rank for a gang table, with the environment and
// the log file that a rank gets.
//
// Threads: constant after construction. Call Start from the thread that lives
// as long as the worker (see RankProcess).
#ifndef LOCKSTEP_WORKER_AGENT_RANK_LAUNCHER_H_
#define LOCKSTEP_WORKER_AGENT_RANK_LAUNCHER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/v1/worker_service.pb.h"
#include "worker/agent/rank_process.h"

namespace lockstep {

struct RankLauncherOptions {
  // Absolute path of lockstep-rank.
  std::string program;
  // The worker's Unix socket.
  std::string socket_path;
  // Cores that the worker may use; a rank with all of them has the host to
  // itself and may wait actively.
  int64_t cores = 1;
};

// The environment of a rank: the worker's own, with the rank's channel and its
// thread settings.
std::vector<std::string> RankEnvironment(const RankLauncherOptions& options,
                                         const v1::RankAssignment& assignment,
                                         const std::string& token);

// JOB_ROOT/J/logs/gG/rank-R.log.
std::string RankLogPath(const v1::RankAssignment& assignment);

absl::StatusOr<std::unique_ptr<RankHandle>> LaunchRank(
    const RankLauncherOptions& options, const v1::RankAssignment& assignment,
    const std::string& token,
    std::function<void(int wait_status, std::string last_line)> on_exit);

// lockstep-rank beside this program's own file. NOT_FOUND if it isn't there.
absl::StatusOr<std::string> FindRankProgram();

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_RANK_LAUNCHER_H_
