#include "coordinator/schedule/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/spec/job_spec.h"
#include "common/status_macros.h"
#include "coordinator/plan/layout_resolver.h"
#include "coordinator/schedule/job_queue.h"

namespace lockstep {
namespace {

constexpr size_t kMostRequestIdBytes = 128;
constexpr size_t kMostSpecBytes = 1 << 20;
constexpr size_t kMostNameBytes = 63;

absl::Status CheckRequest(const v1::SubmitRequest& request) {
  if (request.request_id().empty() ||
      request.request_id().size() > kMostRequestIdBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("request_id has ", request.request_id().size(),
                     " bytes, want 1 to ", kMostRequestIdBytes));
  }
  if (request.spec().ByteSizeLong() > kMostSpecBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the spec has ", request.spec().ByteSizeLong(),
                     " bytes, want at most ", kMostSpecBytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckpointRecord> NewestCheckpoint(const JobTable& jobs,
                                                  const std::string& id) {
  const std::vector<CheckpointRecord> all = jobs.Checkpoints(id);
  if (all.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", id, " has no committed checkpoint"));
  }
  return all.front();
}

std::string ActionWord(const v1::Action& action) {
  switch (action.kind_case()) {
    case v1::Action::kGenerate:
      return "generate";
    case v1::Action::kEvaluate:
      return "evaluate";
    case v1::Action::kExport:
      return "export";
    case v1::Action::KIND_NOT_SET:
      break;
  }
  return "action";
}

// `layout` as a job file would ask for it.
v1::ParallelSpec ByHand(const v1::Layout& layout) {
  v1::ParallelSpec parallel;
  parallel.set_dp(layout.dp());
  parallel.set_fsdp(layout.fsdp());
  parallel.set_zero_stage(layout.zero_stage());
  parallel.set_cp(layout.cp());
  parallel.set_cp_kind(layout.cp_kind());
  parallel.set_tp(layout.tp());
  parallel.set_sequence_parallel(layout.sequence_parallel());
  parallel.set_pp(layout.pp());
  parallel.set_schedule(layout.schedule());
  parallel.set_virtual_stages(layout.virtual_stages());
  parallel.set_micro_batch(layout.micro_batch());
  parallel.set_activation_checkpoint(layout.activation_checkpoint());
  return parallel;
}

// The spec of an action: the source job's model, data and training, in J's
// layout, of which one replica is enough.
absl::StatusOr<v1::JobSpec> ActionSpec(const v1::JobSpec& asked,
                                       const JobTable& jobs) {
  ASSIGN_OR_RETURN(const std::string source_id,
                   jobs.Resolve(asked.action().source_job()));
  ASSIGN_OR_RETURN(const JobRecord source, jobs.Get(source_id));
  if (source.spec.has_action()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", source_id, " trained no model, it is itself a ",
                     ActionWord(source.spec.action())));
  }
  ASSIGN_OR_RETURN(const CheckpointRecord checkpoint,
                   NewestCheckpoint(jobs, source_id));
  v1::JobSpec spec = source.spec;
  *spec.mutable_action() = asked.action();
  spec.mutable_action()->set_source_job(source_id);
  spec.mutable_action()->set_checkpoint(checkpoint.path);
  const std::string suffix = absl::StrCat("-", ActionWord(asked.action()));
  spec.set_name(source.spec.name().substr(0, kMostNameBytes - suffix.size()) +
                suffix);
  const auto attempt = jobs.NewestAttempt(source_id);
  if (attempt.has_value() && attempt->layout.has_layout()) {
    *spec.mutable_parallel() = ByHand(attempt->layout.layout());
  }
  v1::ParallelSpec& parallel = *spec.mutable_parallel();
  parallel.set_dp(1);
  if (asked.action().has_generate() && parallel.cp() > 1) {
    // A text under way has too few rows to cut: ranks share the states alone.
    parallel.set_fsdp(std::max<int64_t>(1, parallel.fsdp()) * parallel.cp());
    parallel.set_cp(1);
    spec.mutable_train()->set_global_batch(
        std::max(spec.train().global_batch(), parallel.fsdp()));
  }
  spec.mutable_resources()->clear_devices();
  return spec;
}

}  // namespace

absl::StatusOr<AdmittedJob> Admit(const v1::SubmitRequest& request,
                                  const JobTable& jobs,
                                  const ClusterView& cluster) {
  RETURN_IF_ERROR(CheckRequest(request));
  RETURN_IF_ERROR(ValidateJobSpec(request.spec()));
  AdmittedJob admitted;
  JobRecord& job = admitted.record;
  job.request_id = request.request_id();
  job.spec = request.spec();
  if (job.spec.has_action()) {
    if (!request.resume_from().empty()) {
      return absl::InvalidArgumentError(
          "resume_from is for training, not for an action");
    }
    ASSIGN_OR_RETURN(job.spec, ActionSpec(request.spec(), jobs));
    RETURN_IF_ERROR(ValidateJobSpec(job.spec));
  } else {
    admitted.warnings = SpecWarnings(job.spec);
  }
  FillDefaults(job.spec);
  if (!request.resume_from().empty()) {
    ASSIGN_OR_RETURN(job.resume_job, jobs.Resolve(request.resume_from()));
    ASSIGN_OR_RETURN(const JobRecord source, jobs.Get(job.resume_job));
    RETURN_IF_ERROR(CheckResumable(job.spec, source.spec));
    ASSIGN_OR_RETURN(const CheckpointRecord checkpoint,
                     NewestCheckpoint(jobs, job.resume_job));
    job.resume_checkpoint = checkpoint.path;
  }
  job.devices = RequestedDevices(job.spec);
  job.devices_at_most = request.refuse_if_pending();
  if (!job.spec.has_action()) job.steps = job.spec.train().steps();

  // What fits no cluster, whatever its size, is refused at once.
  v1::ClusterShape own;
  own.set_devices(job.devices);
  const auto layout = ResolveLayout(
      job.spec, own,
      job.devices_at_most ? DeviceUse::kAtMost : DeviceUse::kExact);
  RETURN_IF_ERROR(layout.status());
  job.devices = layout->world_size();
  job.reason = "waits to be placed";
  if (request.refuse_if_pending()) {
    const auto placed = PlaceJob(job, cluster);
    const bool only_waits =
        placed.status().code() == absl::StatusCode::kUnavailable;
    if (!placed.ok() && !only_waits) return placed.status();
  }
  return admitted;
}

}  // namespace lockstep
