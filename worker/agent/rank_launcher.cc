#include "worker/agent/rank_launcher.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "worker/agent/rank_channel.h"

namespace lockstep {
namespace {

constexpr char kRankProgram[] = "lockstep-rank";

struct Variable {
  std::string name;
  std::string value;
};

std::vector<Variable> RankVariables(const RankLauncherOptions& options,
                                    const v1::RankAssignment& assignment,
                                    const std::string& token) {
  std::vector<Variable> variables = {
      {kRankSocketVariable, options.socket_path},
      {kRankTokenVariable, token},
      {"OMP_NUM_THREADS", absl::StrCat(assignment.threads())},
      {"OMP_DYNAMIC", "false"},
      // Ranks must not all bind to the first cores.
      {"OMP_PROC_BIND", "false"},
  };
  // Where ranks share cores, a thread that spins while it waits takes the time
  // of the one it waits for.
  if (assignment.threads() < options.cores ||
      assignment.host_ranks_size() > 1) {
    variables.push_back({"OMP_WAIT_POLICY", "passive"});
    variables.push_back({"GOMP_SPINCOUNT", "0"});
  }
  return variables;
}

}  // namespace

std::vector<std::string> RankEnvironment(const RankLauncherOptions& options,
                                         const v1::RankAssignment& assignment,
                                         const std::string& token) {
  const std::vector<Variable> variables =
      RankVariables(options, assignment, token);
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool replaced = false;
    for (const Variable& variable : variables) {
      replaced |= absl::StartsWith(*entry, variable.name + "=");
    }
    if (!replaced) environment.emplace_back(*entry);
  }
  for (const Variable& variable : variables) {
    environment.push_back(absl::StrCat(variable.name, "=", variable.value));
  }
  return environment;
}

std::string RankLogPath(const v1::RankAssignment& assignment) {
  return absl::StrCat(assignment.job_dir(), "/logs/g",
                      assignment.gang().generation(), "/rank-",
                      assignment.rank(), ".log");
}

absl::StatusOr<std::unique_ptr<RankHandle>> LaunchRank(
    const RankLauncherOptions& options, const v1::RankAssignment& assignment,
    const std::string& token,
    std::function<void(int wait_status, std::string last_line)> on_exit) {
  RankProcess::Options process;
  process.program = options.program;
  process.environment = RankEnvironment(options, assignment, token);
  process.log_path = RankLogPath(assignment);
  process.on_exit = std::move(on_exit);
  return RankProcess::Start(std::move(process));
}

absl::StatusOr<std::string> FindRankProgram() {
  char own[PATH_MAX] = {};
  const ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
  if (length < 0) {
    return absl::UnavailableError(
        absl::StrCat("/proc/self/exe: ", std::strerror(errno)));
  }
  std::string path(own, static_cast<size_t>(length));
  path.resize(path.rfind('/') + 1);
  path += kRankProgram;
  if (access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat("can't run ", path, ": ", std::strerror(errno)));
  }
  return path;
}

}  // namespace lockstep
