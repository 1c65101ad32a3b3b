#include "coordinator/rpc/job_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "common/timestamp.h"
#include "coordinator/jobs/job_report.h"
#include "coordinator/rpc/rpc_metrics.h"
#include "coordinator/schedule/admission.h"

namespace lockstep {
namespace {

// Clients wait longer than this for an answer.
constexpr absl::Duration kStoreTimeout = absl::Seconds(8);
constexpr int64_t kMostEvents = 10'000;

}  // namespace

JobServiceImpl::JobServiceImpl(Deps deps)
    : deps_(std::move(deps)), started_(deps_.clock.Now()) {}

absl::Status JobServiceImpl::DoSubmit(const v1::SubmitRequest& request,
                                      v1::SubmitResponse& response) {
  if (const auto known = deps_.jobs.FindRequest(request.request_id())) {
    response.set_job_id(known->id);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(AdmittedJob admitted,
                   Admit(request, deps_.jobs, deps_.workers.View()));
  ASSIGN_OR_RETURN(const JobRecord job,
                   deps_.jobs.Add(std::move(admitted.record), kStoreTimeout));
  deps_.loop.Post([this] { deps_.supervisor.OnJobAdded(); });
  response.set_job_id(job.id);
  for (std::string& warning : admitted.warnings) {
    response.add_warnings(std::move(warning));
  }
  return absl::OkStatus();
}

grpc::Status JobServiceImpl::Submit(grpc::ServerContext* context,
                                    const v1::SubmitRequest* request,
                                    v1::SubmitResponse* response) {
  const absl::Status status = DoSubmit(*request, *response);
  if (status.ok()) {
    deps_.metrics.Increment(metric_names::kJobsSubmitted, {});
  } else {
    deps_.metrics.Increment(
        metric_names::kJobsRefused,
        {{"code", absl::StatusCodeToString(status.code())}});
  }
  return FinishRpc(deps_.metrics, "Submit", status);
}

grpc::Status JobServiceImpl::GetJob(grpc::ServerContext* context,
                                    const v1::GetJobRequest* request,
                                    v1::JobInfo* response) {
  const absl::Status status = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::string id, deps_.jobs.Resolve(request->job()));
    ASSIGN_OR_RETURN(*response, deps_.jobs.Info(id));
    return absl::OkStatus();
  }();
  return FinishRpc(deps_.metrics, "GetJob", status);
}

grpc::Status JobServiceImpl::ListJobs(grpc::ServerContext* context,
                                      const v1::ListJobsRequest* request,
                                      v1::ListJobsResponse* response) {
  const std::vector<JobRecord> jobs = deps_.jobs.List();
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
    if (job->spec.has_action() && !request->all()) continue;
    // One that was deleted meanwhile is left out.
    auto info = deps_.jobs.Info(job->id);
    if (info.ok()) *response->add_jobs() = *std::move(info);
  }
  return FinishRpc(deps_.metrics, "ListJobs", absl::OkStatus());
}

absl::Status JobServiceImpl::DoGetReport(const std::string& name,
                                         v1::JobReport& report) {
  ASSIGN_OR_RETURN(const std::string id, deps_.jobs.Resolve(name));
  ASSIGN_OR_RETURN(const JobRecord job, deps_.jobs.Get(id));
  ASSIGN_OR_RETURN(const auto history, deps_.jobs.History(id));
  report =
      MakeJobReport(job, deps_.jobs.Attempts(id), deps_.jobs.Checkpoints(id),
                    deps_.jobs.Memory(id), history->summary());
  return absl::OkStatus();
}

grpc::Status JobServiceImpl::GetReport(grpc::ServerContext* context,
                                       const v1::GetJobRequest* request,
                                       v1::JobReport* response) {
  return FinishRpc(deps_.metrics, "GetReport",
                   DoGetReport(request->job(), *response));
}

absl::Status JobServiceImpl::DoCancel(const v1::CancelJobRequest& request,
                                      v1::JobInfo& response) {
  ASSIGN_OR_RETURN(const std::string id, deps_.jobs.Resolve(request.job()));
  RETURN_IF_ERROR(deps_.loop.Run(
      [&] { return deps_.supervisor.Cancel(id, request.reason()); }));
  const absl::Status stored = deps_.jobs.store().WaitUntilStored(kStoreTimeout);
  if (!stored.ok()) {
    return absl::Status(
        stored.code(),
        absl::StrCat("job ", id, " is cancelled, but a restart of the ",
                     "coordinator could forget that: ", stored.message()));
  }
  ASSIGN_OR_RETURN(response, deps_.jobs.Info(id));
  return absl::OkStatus();
}

grpc::Status JobServiceImpl::CancelJob(grpc::ServerContext* context,
                                       const v1::CancelJobRequest* request,
                                       v1::JobInfo* response) {
  return FinishRpc(deps_.metrics, "CancelJob", DoCancel(*request, *response));
}

grpc::Status JobServiceImpl::DeleteJob(grpc::ServerContext* context,
                                       const v1::GetJobRequest* request,
                                       v1::DeleteJobResponse* response) {
  const absl::Status status = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::string id, deps_.jobs.Resolve(request->job()));
    RETURN_IF_ERROR(deps_.jobs.Delete(id, kStoreTimeout));
    deps_.metrics.RemoveSeries("job", id);
    response->set_id(id);
    return absl::OkStatus();
  }();
  return FinishRpc(deps_.metrics, "DeleteJob", status);
}

grpc::Status JobServiceImpl::ListWorkers(grpc::ServerContext* context,
                                         const v1::ListWorkersRequest* request,
                                         v1::ListWorkersResponse* response) {
  for (v1::WorkerInfo& worker : deps_.workers.Infos()) {
    *response->add_workers() = std::move(worker);
  }
  return FinishRpc(deps_.metrics, "ListWorkers", absl::OkStatus());
}

grpc::Status JobServiceImpl::ListCheckpoints(
    grpc::ServerContext* context, const v1::GetJobRequest* request,
    v1::ListCheckpointsResponse* response) {
  const absl::Status status = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::string id, deps_.jobs.Resolve(request->job()));
    for (const CheckpointRecord& record : deps_.jobs.Checkpoints(id)) {
      v1::CheckpointInfo& checkpoint = *response->add_checkpoints();
      checkpoint.set_path(record.path);
      checkpoint.set_step(record.step);
      checkpoint.set_generation(record.generation);
      checkpoint.set_bytes(record.bytes);
      *checkpoint.mutable_committed() = ToTimestamp(record.committed);
    }
    return absl::OkStatus();
  }();
  return FinishRpc(deps_.metrics, "ListCheckpoints", status);
}

grpc::Status JobServiceImpl::ListEvents(grpc::ServerContext* context,
                                        const v1::GetJobRequest* request,
                                        v1::ListEventsResponse* response) {
  const absl::Status status = [&]() -> absl::Status {
    std::string id;
    if (!request->job().empty()) {
      ASSIGN_OR_RETURN(id, deps_.jobs.Resolve(request->job()));
    }
    // Those that are on their way are part of the truth.
    RETURN_IF_ERROR(deps_.jobs.store().WaitUntilStored(kStoreTimeout));
    ASSIGN_OR_RETURN(std::vector<v1::Event> events,
                     deps_.jobs.store().Events(id, kMostEvents));
    for (v1::Event& event : events) {
      *response->add_events() = std::move(event);
    }
    return absl::OkStatus();
  }();
  return FinishRpc(deps_.metrics, "ListEvents", status);
}

grpc::Status JobServiceImpl::GetServerInfo(
    grpc::ServerContext* context, const v1::GetServerInfoRequest* request,
    v1::ServerInfo* response) {
  const ClusterView cluster = deps_.workers.View();
  response->set_version(deps_.version);
  response->set_store(deps_.jobs.store().description());
  response->set_workers(static_cast<int64_t>(cluster.workers.size()));
  response->set_devices(cluster.devices());
  response->set_devices_free(cluster.free_devices());
  *response->mutable_started() = ToTimestamp(started_);
  return FinishRpc(deps_.metrics, "GetServerInfo", absl::OkStatus());
}

}  // namespace lockstep
