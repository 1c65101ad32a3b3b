#include "cli/local_cluster.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/text_file.h"
#include "common/bytes.h"
#include "common/host/host_resources.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(60);
// A worker with nothing to do ends at once; one with a job has 30 s.
constexpr absl::Duration kWorkerEnd = absl::Seconds(32);
constexpr absl::Duration kCoordinatorEnd = absl::Seconds(8);
constexpr absl::Duration kLeftoverEnd = absl::Seconds(5);
constexpr absl::Duration kPollInterval = absl::Milliseconds(20);

// After a SIGKILL of the folder's last owner its daemons die too, but a moment
// later; until then the coordinator's store is locked.
void WaitForLeftovers(const std::string& folder, const StopToken& stop) {
  const auto file = ClusterFile::Read(folder);
  if (!file.ok()) return;
  const absl::Time deadline = absl::Now() + kLeftoverEnd;
  for (const int64_t pid : file->daemon_pids) {
    while (pid > 0 && kill(static_cast<pid_t>(pid), 0) == 0 &&
           absl::Now() < deadline) {
      if (stop.WaitFor(kPollInterval)) return;
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Start(
    Options options) {
  RETURN_IF_ERROR(MakeFolders(options.folder + "/jobs"));
  RETURN_IF_ERROR(MakeFolders(options.folder + "/logs"));
  std::unique_ptr<LocalCluster> cluster(new LocalCluster(std::move(options)));
  ASSIGN_OR_RETURN(cluster->lock_,
                   FolderLock::Acquire(cluster->options_.folder));
  WaitForLeftovers(cluster->options_.folder, *cluster->options_.stop);
  RETURN_IF_ERROR(cluster->StartCoordinator());
  return cluster;
}

std::unique_ptr<LocalCluster> LocalCluster::Attach(Options options,
                                                   std::string address) {
  std::unique_ptr<LocalCluster> cluster(new LocalCluster(std::move(options)));
  cluster->file_.coordinator = std::move(address);
  return cluster;
}

LocalCluster::~LocalCluster() { Stop(); }

absl::Status LocalCluster::StartCoordinator() {
  const std::string& folder = options_.folder;
  const auto arguments = [&folder](const std::string& grpc,
                                   const std::string& metrics) {
    return std::vector<std::string>{
        "--listen",   grpc,
        "--metrics",  metrics,
        "--store",    absl::StrCat("sqlite:", folder, "/state.db"),
        "--job-root", folder + "/jobs"};
  };
  DaemonProcess::Options options = {
      .title = "coordinator",
      .program = options_.program_folder + "/lockstep-coordinator",
      .arguments = arguments("127.0.0.1:0", "127.0.0.1:0"),
      .log_path = folder + "/logs/coordinator.log"};
  ASSIGN_OR_RETURN(auto started, DaemonProcess::Start(std::move(options)));
  DaemonProcess& coordinator = *started;
  AddDaemon(std::move(started));
  ASSIGN_OR_RETURN(file_.coordinator,
                   coordinator.WaitForLine("grpc listening on ", kStartTimeout,
                                           *options_.stop));
  ASSIGN_OR_RETURN(file_.metrics,
                   coordinator.WaitForLine("metrics listening on ",
                                           kStartTimeout, *options_.stop));
  coordinator.RestartWith(arguments(file_.coordinator, file_.metrics));
  file_.pid = getpid();
  file_.daemon_pids = {coordinator.pid()};
  return file_.Write(folder);
}

void LocalCluster::AddDaemon(std::unique_ptr<DaemonProcess> daemon) {
  absl::MutexLock lock(&mutex_);
  // KillNow came while it was started.
  if (killed_) daemon->Kill();
  daemons_.push_back(std::move(daemon));
}

absl::Status LocalCluster::CancelLeftovers(CoordinatorClient& client) {
  ASSIGN_OR_RETURN(const v1::ListJobsResponse list, client.ListJobs(true));
  for (const v1::JobInfo& job : list.jobs()) {
    if (job.state() != v1::JOB_STATE_PENDING) continue;
    RETURN_IF_ERROR(
        client
            .CancelJob(job.id(), "because the command that started it is gone")
            .status());
  }
  return absl::OkStatus();
}

absl::Status LocalCluster::AddWorkers(const Workers& workers,
                                      CoordinatorClient& client) {
  constexpr uint64_t kPercentOfHost = 90;
  const uint64_t memory = workers.memory_per_device.value_or(
      UsableMemoryBytes() / 100 * kPercentOfHost / workers.count);
  const int64_t threads = std::max<int64_t>(1, UsableCores() / workers.count);
  std::vector<DaemonProcess*> started;
  for (int64_t i = 0; i < workers.count; ++i) {
    // Other commands may attach workers of theirs.
    const std::string name = is_owner()
                                 ? absl::StrCat("worker-", i)
                                 : absl::StrCat("worker-", getpid(), "-", i);
    DaemonProcess::Options options = {
        .title = name,
        .program = options_.program_folder + "/lockstep-worker",
        .arguments = {"--name", name, "--coordinator", address(), "--devices",
                      "cpu:1", "--threads", absl::StrCat(threads),
                      "--memory-per-device", FormatBytesExact(memory),
                      "--job-root", options_.folder + "/jobs", "--data-root",
                      "/"},
        .log_path = absl::StrCat(options_.folder, "/logs/", name, ".log")};
    ASSIGN_OR_RETURN(auto worker, DaemonProcess::Start(std::move(options)));
    file_.daemon_pids.push_back(worker->pid());
    started.push_back(worker.get());
    AddDaemon(std::move(worker));
  }
  if (is_owner()) {
    RETURN_IF_ERROR(file_.Write(options_.folder));
  }
  const absl::Time deadline = absl::Now() + kStartTimeout;
  while (true) {
    ASSIGN_OR_RETURN(const v1::ListWorkersResponse list, client.ListWorkers());
    const int64_t ready = std::count_if(
        list.workers().begin(), list.workers().end(),
        [](const v1::WorkerInfo& worker) { return worker.state() == "READY"; });
    if (ready >= workers.count) return absl::OkStatus();
    for (const DaemonProcess* worker : started) {
      if (worker->ended()) return absl::InternalError(worker->EndText());
    }
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "only ", ready, " of ", workers.count, " workers came up within ",
          absl::FormatDuration(kStartTimeout), "; see ", options_.folder,
          "/logs"));
    }
    if (options_.stop->WaitFor(kPollInterval)) return options_.stop->Check();
  }
}

void LocalCluster::Stop() {
  std::vector<DaemonProcess*> daemons;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& daemon : daemons_) daemons.push_back(daemon.get());
  }
  if (daemons.empty()) return;
  const size_t first_worker = is_owner() ? 1 : 0;
  for (size_t i = first_worker; i < daemons.size(); ++i) {
    daemons[i]->Terminate();
  }
  const absl::Time deadline = absl::Now() + kWorkerEnd;
  for (size_t i = first_worker; i < daemons.size(); ++i) {
    if (!daemons[i]->WaitForEnd(deadline - absl::Now())) daemons[i]->Kill();
  }
  if (is_owner()) {
    daemons[0]->Terminate();
    if (!daemons[0]->WaitForEnd(kCoordinatorEnd)) daemons[0]->Kill();
  }
  for (DaemonProcess* daemon : daemons) {
    // SIGKILL is not waited out: it ends a process whatever it does.
    daemon->WaitForEnd(absl::InfiniteDuration());
  }
  absl::MutexLock lock(&mutex_);
  daemons_.clear();
  if (is_owner()) ClusterFile::Remove(options_.folder);
}

void LocalCluster::KillNow() {
  absl::MutexLock lock(&mutex_);
  killed_ = true;
  for (const auto& daemon : daemons_) daemon->Kill();
}

}  // namespace lockstep
