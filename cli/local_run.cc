#include "cli/local_run.h"

#include <filesystem>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "cli/job_file.h"
#include "cli/job_report_text.h"
#include "common/bytes.h"
#include "common/spec/job_spec.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// After Ctrl-C, for the job to end as the coordinator ends it.
constexpr absl::Duration kCancelPatience = absl::Seconds(45);
constexpr int64_t kMostLocalWorkers = 1024;

}  // namespace

LocalRun::LocalRun(LocalRunOptions options, Console& console)
    : options_(std::move(options)),
      console_(console),
      view_(console, ProgressView::Detail::kAll) {}

absl::Status LocalRun::Prepare() {
  if (!options_.flags.coordinator.empty()) {
    return absl::InvalidArgumentError(
        "`run` starts a cluster of its own; use `submit` with --coordinator");
  }
  ASSIGN_OR_RETURN(spec_, ReadJobFile(options_.job_file, options_.settings));
  MakePathsAbsolute(FolderOf(options_.job_file), spec_);
  const v1::DeviceRange& asked = spec_.resources().devices();
  const int64_t local = options_.local.value_or(
      spec_.resources().has_devices() ? asked.max() : 1);
  if (options_.local.has_value() || !spec_.resources().has_devices()) {
    v1::DeviceRange& devices = *spec_.mutable_resources()->mutable_devices();
    devices.set_min(local);
    devices.set_max(local);
  }
  if (options_.memory_per_device.has_value()) {
    spec_.mutable_resources()->mutable_memory_per_device()->set_bytes(
        *options_.memory_per_device);
  }
  RETURN_IF_ERROR(ValidateJobSpec(spec_));
  if (local > kMostLocalWorkers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--local is ", local, ", want at most ", kMostLocalWorkers));
  }
  RETURN_IF_ERROR(CheckInputs(spec_));
  if (!options_.steps_out.empty()) {
    ASSIGN_OR_RETURN(steps_file_, StepsFile::Open(options_.steps_out));
  }
  return absl::OkStatus();
}

absl::Status LocalRun::StartCluster() {
  std::error_code error;
  const std::string folder =
      std::filesystem::absolute(options_.flags.folder.value_or(kDefaultFolder),
                                error)
          .lexically_normal()
          .string();
  const int64_t workers = spec_.resources().devices().max();
  view_.PrintLine(absl::StrCat(spec_.name(), ": starting a coordinator and ",
                               workers, workers == 1 ? " worker" : " workers",
                               " in ",
                               options_.flags.folder.value_or(kDefaultFolder)));
  ASSIGN_OR_RETURN(auto cluster, LocalCluster::Start(
                                     {.folder = folder,
                                      .program_folder = console_.program_folder,
                                      .stop = &stop_}));
  LocalCluster& started = *cluster;
  {
    absl::MutexLock lock(&mutex_);
    cluster_ = std::move(cluster);
  }
  RETURN_IF_ERROR(stop_.Check());
  ASSIGN_OR_RETURN(auto client, CoordinatorClient::Connect(
                                    {.address = started.address(),
                                     .contact_patience = absl::Seconds(30),
                                     .call_patience = absl::Seconds(60),
                                     .stop = &stop_}));
  RETURN_IF_ERROR(started.CancelLeftovers(*client));
  RETURN_IF_ERROR(started.AddWorkers(
      {.count = workers, .memory_per_device = options_.memory_per_device},
      *client));
  absl::MutexLock lock(&mutex_);
  client_ = std::move(client);
  return absl::OkStatus();
}

absl::StatusOr<std::string> LocalRun::Submit() {
  std::shared_ptr<CoordinatorClient> client;
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(stop_.Check());
    client = client_;
    submitted_ = true;
  }
  v1::SubmitRequest request;
  *request.mutable_spec() = spec_;
  request.set_resume_from(options_.resume);
  request.set_refuse_if_pending(true);
  ASSIGN_OR_RETURN(const v1::SubmitResponse submitted,
                   client->Submit(std::move(request)));
  {
    absl::MutexLock lock(&mutex_);
    job_id_ = submitted.job_id();
  }
  for (const std::string& warning : submitted.warnings()) {
    view_.PrintLine(absl::StrCat("warning: ", warning));
  }
  return submitted.job_id();
}

void LocalRun::CancelWhenAsked() {
  std::shared_ptr<CoordinatorClient> client;
  std::string job_id;
  {
    absl::MutexLock lock(&mutex_);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return ended_ || (cancel_asked_ && !job_id_.empty());
    };
    mutex_.Await(absl::Condition(&ready));
    if (ended_) return;
    client = client_;
    job_id = job_id_;
  }
  // If this fails, Interrupt is called again after its patience.
  (void)client->CancelJob(job_id, "by Ctrl-C");
}

absl::StatusOr<ExitCode> LocalRun::FollowToTheEnd(const std::string& job_id) {
  std::shared_ptr<CoordinatorClient> client;
  {
    absl::MutexLock lock(&mutex_);
    client = client_;
  }
  ASSIGN_OR_RETURN(const v1::JobInfo job,
                   client->Watch(job_id, [this](const v1::JobUpdate& update) {
                     view_.Show(update, absl::Now());
                     if (update.has_step() && steps_file_ != nullptr) {
                       steps_file_->Append(update.step());
                     }
                     return true;
                   }));
  view_.Clear();
  if (steps_file_ != nullptr) {
    std::vector<v1::StepReport> steps;
    v1::GetStepsRequest request;
    request.set_job(job_id);
    RETURN_IF_ERROR(client->GetSteps(
        request,
        [&steps](const v1::StepReport& step) { steps.push_back(step); }));
    RETURN_IF_ERROR(steps_file_->Finish(steps));
  }
  ASSIGN_OR_RETURN(const v1::JobReport report, client->GetReport(job_id));
  console_.err << ReportText(report) << std::flush;
  if (options_.format == OutputFormat::kTable) {
    ClusterFlags flags = options_.flags;
    // A coordinator that is configured would be asked in its place.
    const auto configured = FindConfigured(console_);
    if (!configured.ok() || configured->has_value()) {
      flags.folder = flags.folder.value_or(kDefaultFolder);
    }
    console_.err << NextCommands(console_, flags, job, report) << std::flush;
  } else {
    PrintMessage(report, options_.format, console_);
  }
  return ExitCodeOf(job.state());
}

absl::StatusOr<ExitCode> LocalRun::Run() {
  RETURN_IF_ERROR(Prepare());
  std::thread canceller([this] { CancelWhenAsked(); });
  const auto tear_down = absl::MakeCleanup([&] {
    LocalCluster* cluster = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      ended_ = true;
      cluster = cluster_.get();
    }
    canceller.join();
    // Not under the lock: a second Ctrl-C may have to kill what hangs here.
    if (cluster != nullptr) cluster->Stop();
    absl::MutexLock lock(&mutex_);
    client_.reset();
    cluster_.reset();
  });
  RETURN_IF_ERROR(StartCluster());
  ASSIGN_OR_RETURN(const std::string job_id, Submit());
  return FollowToTheEnd(job_id);
}

absl::Duration LocalRun::Interrupt(int count) {
  absl::MutexLock lock(&mutex_);
  if (count > 1) {
    if (cluster_ != nullptr) cluster_->KillNow();
    stop_.Stop();
    return absl::InfiniteDuration();
  }
  cancel_asked_ = true;
  if (!submitted_) stop_.Stop();
  return kCancelPatience;
}

}  // namespace lockstep
