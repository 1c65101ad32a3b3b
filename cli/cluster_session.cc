#include "cli/cluster_session.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "cli/cluster_file.h"
#include "cli/contexts.h"
#include "common/address.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// For another process's local cluster to come up, or to end.
constexpr absl::Duration kOtherTimeout = absl::Seconds(30);
constexpr absl::Duration kPollInterval = absl::Milliseconds(50);

}  // namespace

absl::StatusOr<std::optional<ConfiguredCoordinator>> FindConfigured(
    const Console& console) {
  const auto variable = console.variable("LOCKSTEP_COORDINATOR");
  if (variable.has_value() && !variable->empty()) {
    return ConfiguredCoordinator{*variable, "LOCKSTEP_COORDINATOR"};
  }
  ASSIGN_OR_RETURN(const Contexts contexts, Contexts::Load(console));
  if (contexts.current.empty()) return std::nullopt;
  const auto address = contexts.CurrentAddress();
  if (!address.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the current context \"", contexts.current,
                     "\" does not exist; see `context list`"));
  }
  return ConfiguredCoordinator{*address,
                               absl::StrCat("context ", contexts.current)};
}

absl::StatusOr<std::unique_ptr<ClusterSession>> ClusterSession::Open(
    const Options& options, const Console& console) {
  std::unique_ptr<ClusterSession> session(new ClusterSession());
  const ClusterFlags& flags = options.flags;
  if (!flags.coordinator.empty()) {
    if (flags.folder.has_value()) {
      return absl::InvalidArgumentError(
          "--coordinator and --dir exclude each other");
    }
    RETURN_IF_ERROR(session->OpenRemote(options, flags.coordinator));
    return session;
  }
  if (!flags.folder.has_value()) {
    ASSIGN_OR_RETURN(const auto configured, FindConfigured(console));
    if (configured.has_value()) {
      RETURN_IF_ERROR(session->OpenRemote(options, configured->address));
      return session;
    }
  }
  RETURN_IF_ERROR(session->OpenLocal(options, console));
  return session;
}

absl::Status ClusterSession::OpenRemote(const Options& options,
                                        const std::string& address) {
  if (const auto parsed = ParseAddress(address); !parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("coordinator: ", parsed.status().message()));
  }
  ASSIGN_OR_RETURN(client_, CoordinatorClient::Connect(
                                {.address = address, .stop = options.stop}));
  return absl::OkStatus();
}

absl::Status ClusterSession::OpenLocal(const Options& options,
                                       const Console& console) {
  const std::string given = options.flags.folder.value_or(kDefaultFolder);
  std::error_code error;
  folder_ = std::filesystem::absolute(given, error).lexically_normal().string();
  local_start_ = options.local_start;
  local_ = {.folder = folder_,
            .program_folder = console.program_folder,
            .stop = options.stop};
  const absl::Time deadline = absl::Now() + kOtherTimeout;
  while (true) {
    if (!FolderLock::IsHeld(folder_)) {
      if (options.local_start == LocalStart::kNever ||
          !std::filesystem::exists(folder_ + "/state.db", error)) {
        return absl::UnavailableError(absl::StrCat(
            "no coordinator is configured, and no local cluster ",
            options.local_start == LocalStart::kNever ? "runs" : "is", " in ",
            given,
            "; give --coordinator HOST:PORT, set LOCKSTEP_COORDINATOR, or "
            "start one by `",
            console.program, " run`"));
      }
      const absl::Status status = StartLocal(options);
      // Another command may have been faster.
      if (status.ok() || !FolderLock::IsHeld(folder_)) return status;
    }
    const auto file = ClusterFile::Read(folder_);
    if (file.ok()) {
      auto client = CoordinatorClient::Connect(
          {.address = file->coordinator, .stop = options.stop});
      if (client.ok()) {
        client_ = *std::move(client);
        return absl::OkStatus();
      }
    }
    RETURN_IF_ERROR(options.stop->Check());
    if (absl::Now() > deadline) {
      return absl::UnavailableError(
          absl::StrCat("the local cluster in ", given,
                       " belongs to a process that does not answer"));
    }
    options.stop->WaitFor(kPollInterval);
  }
}

absl::Status ClusterSession::StartLocal(const Options& options) {
  ASSIGN_OR_RETURN(cluster_, LocalCluster::Start(local_));
  is_owner_ = true;
  ASSIGN_OR_RETURN(
      client_, CoordinatorClient::Connect({.address = cluster_->address(),
                                           .contact_patience = kOtherTimeout,
                                           .stop = options.stop}));
  return cluster_->CancelLeftovers(*client_);
}

absl::Status ClusterSession::StartWorkersFor(const v1::JobInfo& job) {
  if (!is_local()) return absl::OkStatus();
  if (!is_owner_) {
    const auto file = ClusterFile::Read(folder_);
    // Beside the coordinator there are workers, on their way if not here yet.
    if (!file.ok() || file->daemon_pids.size() > 1) return absl::OkStatus();
    ASSIGN_OR_RETURN(const v1::ListWorkersResponse list,
                     client_->ListWorkers());
    const bool has_worker = std::any_of(
        list.workers().begin(), list.workers().end(),
        [](const v1::WorkerInfo& worker) { return worker.state() == "READY"; });
    if (has_worker) return absl::OkStatus();
    cluster_ = LocalCluster::Attach(local_, client_->address());
  }
  LocalCluster::Workers workers;
  const v1::ResourceSpec& resources = job.spec().resources();
  workers.count = resources.has_devices() ? resources.devices().max() : 1;
  if (resources.has_memory_per_device()) {
    workers.memory_per_device = resources.memory_per_device().bytes();
  }
  return cluster_->AddWorkers(workers, *client_);
}

bool ClusterSession::CanBeReopened() const {
  return is_local() && !is_owner_ && !begun_ &&
         local_start_ == LocalStart::kIfNeeded && !FolderLock::IsHeld(folder_);
}

}  // namespace lockstep
