#include "coordinator/coordinator.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ids.h"
#include "common/status_macros.h"
#include "common/version.h"

namespace lockstep {
namespace {

constexpr absl::Duration kSlowInterval = absl::Minutes(1);

absl::Status MakeJobRoot(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("job root ", path, " can't be made: ", error.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(Options options,
                                                                Clock& clock) {
  RETURN_IF_ERROR(MakeJobRoot(options.job_root));
  auto owner = std::unique_ptr<Coordinator>(new Coordinator);
  Coordinator& it = *owner;
  it.loop_ = SerialLoop::Start(clock, options.tick_interval, [&it] {
    if (it.ticked_ != nullptr) it.ticked_->Tick();
  });
  it.clock_ = &clock;
  it.blocking_loop_ =
      SerialLoop::Start(clock, kSlowInterval, [&it] { it.TickSlowly(); });
  ASSIGN_OR_RETURN(
      it.store_,
      SqliteJobStore::Open(
          {.path = options.store_path, .on_commit = [&it](absl::Duration took) {
             it.registry_.Observe(metric_names::kStoreCommitSeconds, {},
                                  absl::ToDoubleSeconds(took));
           }}));
  ASSIGN_OR_RETURN(StoredState stored, it.store_->Load());
  std::vector<RendezvousRecord> rendezvous = std::move(stored.rendezvous);
  ASSIGN_OR_RETURN(
      it.jobs_,
      JobTable::Load(
          *it.store_, std::move(stored), clock,
          {.job_root = options.job_root,
           .history = {},
           .on_move = [&it](const JobRecord& job) { it.NoteMove(job); },
           .random_suffix = RandomBase32}));
  it.workers_ = std::make_unique<WorkerRegistry>(clock, options.workers);
  it.rendezvous_ = std::make_unique<RendezvousStore>(*it.store_, clock);
  options.gangs.version = std::string(Version());
  it.supervisor_ = std::make_unique<GangSupervisor>(
      GangSupervisor::Deps{
          .jobs = *it.jobs_,
          .workers = *it.workers_,
          .rendezvous = *it.rendezvous_,
          .clock = clock,
          .metrics = it.registry_,
          .post = [&it](auto closure) { it.loop_->Post(std::move(closure)); },
          .post_blocking =
              [&it](auto closure) {
                it.blocking_loop_->Post(std::move(closure));
              }},
      options.gangs);
  it.blocking_loop_->Post([&it] { it.slowly_ticked_ = it.jobs_.get(); });
  it.loop_->Run([&] {
    it.supervisor_->Recover(rendezvous);
    it.ticked_ = it.supervisor_.get();
  });
  it.job_service_ = std::make_unique<JobServiceImpl>(
      JobServiceImpl::Deps{.jobs = *it.jobs_,
                           .workers = *it.workers_,
                           .supervisor = *it.supervisor_,
                           .loop = *it.loop_,
                           .metrics = it.registry_,
                           .clock = clock,
                           .version = std::string(Version())});
  it.worker_service_ = std::make_unique<WorkerServiceImpl>(
      WorkerServiceImpl::Deps{.supervisor = *it.supervisor_,
                              .loop = *it.loop_,
                              .rendezvous = *it.rendezvous_,
                              .store = *it.store_,
                              .metrics = it.registry_});
  it.metrics_ = std::make_unique<CoordinatorMetrics>(
      it.registry_, *it.jobs_, *it.workers_, *it.rendezvous_, *it.job_service_,
      clock);
  ASSIGN_OR_RETURN(
      it.server_, RpcServer::Start(options.listen, {it.job_service_.get(),
                                                    it.worker_service_.get()}));
  if (options.metrics.has_value()) {
    ASSIGN_OR_RETURN(
        it.metrics_server_,
        MetricsServer::Start({.address = *options.metrics,
                              .registry = &it.registry_,
                              .collect = [&it] { it.metrics_->Collect(); },
                              .ready = [&it] { return it.store_->health(); }}));
  }
  return owner;
}

void Coordinator::NoteMove(const JobRecord& job) {
  CountMove(registry_, job);
  if (IsEnded(job.state)) ended_jobs_.Note(job.id, clock_->Uptime());
}

void Coordinator::TickSlowly() {
  if (slowly_ticked_ == nullptr) return;
  slowly_ticked_->WriteHistories();
  ended_jobs_.Purge(clock_->Uptime(), registry_);
}

Coordinator::~Coordinator() {
  metrics_server_.reset();
  if (job_service_ != nullptr) job_service_->Stop();
  if (rendezvous_ != nullptr) rendezvous_->Stop();
  if (supervisor_ != nullptr) {
    loop_->Run([this] { supervisor_->OnShutdown(); });
  }
  server_.reset();
  if (loop_ != nullptr) loop_->Stop();
  if (blocking_loop_ != nullptr) blocking_loop_->Stop();
}

std::optional<Address> Coordinator::metrics_address() const {
  if (metrics_server_ == nullptr) return std::nullopt;
  return metrics_server_->address();
}

}  // namespace lockstep
