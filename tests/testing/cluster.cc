#include "tests/testing/cluster.h"

#include <signal.h>

#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/log.h"

namespace lockstep {
namespace testing {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(30);
constexpr char kListening[] = "grpc listening on ";

}  // namespace

Cluster::Cluster(Sandbox& sandbox, const ClusterOptions& options)
    : sandbox_(sandbox), options_(options), address_("127.0.0.1:0") {
  std::filesystem::create_directories(sandbox.dir().File("jobs"));
  std::filesystem::create_directories(sandbox.dir().File("data"));
  StartCoordinator();
  for (int i = 0; i < options.workers; ++i) StartWorker();
}

void Cluster::KillCoordinator() {
  coordinator_->Signal(SIGKILL);
  const absl::StatusOr<ExitStatus> exit =
      coordinator_->WaitForExit(kStartTimeout);
  CHECK(exit.ok()) << exit.status();
}

void Cluster::StartCoordinator() {
  coordinator_ =
      sandbox_.Start("lockstep-coordinator",
                     {"--listen", address_, "--store",
                      absl::StrCat("sqlite:", sandbox_.dir().File("state.db")),
                      "--job-root", sandbox_.dir().File("jobs")});
  const absl::StatusOr<std::string> line =
      coordinator_->WaitForLine(Stream::kStderr, kListening, kStartTimeout);
  CHECK(line.ok()) << line.status();
  address_ = line->substr(line->find(kListening) + sizeof(kListening) - 1);
  address_ = address_.substr(0, address_.find_first_of(" \r"));
  sandbox_.SetEnvironment("LOCKSTEP_COORDINATOR", address_);
}

void Cluster::StartWorker() {
  workers_.push_back(sandbox_.Start(
      "lockstep-worker",
      {"--coordinator", address_, "--devices",
       absl::StrCat("cpu:", options_.devices), "--job-root",
       sandbox_.dir().File("jobs"), "--data-root", sandbox_.dir().File("data"),
       "--memory-per-device", options_.memory_per_device}));
}

}  // namespace testing
}  // namespace lockstep
