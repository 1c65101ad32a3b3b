#include "tests/unit/cli/fake_job_service.h"

#include <grpcpp/server_builder.h>

#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/log.h"

namespace lockstep::testing {

FakeJobService::FakeJobService() {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  CHECK(server_ != nullptr) << "no free port on loopback";
  address_ = absl::StrCat("127.0.0.1:", port);
}

FakeJobService::~FakeJobService() {
  // Calls that still hang are cancelled at once.
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

v1::JobInfo& FakeJobService::AddJob(const std::string& id, v1::JobState state) {
  jobs_.push_back(std::make_unique<v1::JobInfo>());
  v1::JobInfo& job = *jobs_.back();
  job.set_id(id);
  job.set_name(id.substr(0, id.find('-')));
  job.set_state(state);
  AddState(id, state);
  return job;
}

void FakeJobService::AddUpdate(const std::string& id, v1::JobUpdate update) {
  std::vector<v1::JobUpdate>& updates = updates_[id];
  update.set_sequence(static_cast<int64_t>(updates.size()) + 1);
  updates.push_back(std::move(update));
}

void FakeJobService::AddState(const std::string& id, v1::JobState state,
                              const std::string& reason) {
  v1::JobUpdate update;
  update.mutable_job()->set_id(id);
  update.mutable_job()->set_name(id.substr(0, id.find('-')));
  update.mutable_job()->set_state(state);
  update.mutable_job()->set_reason(reason);
  update.mutable_job()->set_steps(10);
  AddUpdate(id, std::move(update));
}

std::vector<v1::SubmitRequest> FakeJobService::submits() const {
  absl::MutexLock lock(&mutex_);
  return submits_;
}

std::vector<int64_t> FakeJobService::watched_after() const {
  absl::MutexLock lock(&mutex_);
  return watched_after_;
}

std::vector<std::string> FakeJobService::streamed() const {
  absl::MutexLock lock(&mutex_);
  return streamed_;
}

std::vector<std::string> FakeJobService::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

grpc::Status FakeJobService::Find(const std::string& id, v1::JobInfo** job) {
  for (const auto& one : jobs_) {
    if (one->id() == id || one->name() == id) {
      *job = one.get();
      return grpc::Status::OK;
    }
  }
  return {grpc::StatusCode::NOT_FOUND, absl::StrCat("no job \"", id, "\"")};
}

grpc::Status FakeJobService::Submit(grpc::ServerContext*,
                                    const v1::SubmitRequest* request,
                                    v1::SubmitResponse* response) {
  absl::MutexLock lock(&mutex_);
  submits_.push_back(*request);
  if (static_cast<int>(submits_.size()) <= lost_submit_answers) {
    return {grpc::StatusCode::UNAVAILABLE, "connection lost"};
  }
  *response = submit_response;
  return submit_status;
}

grpc::Status FakeJobService::GetJob(grpc::ServerContext*,
                                    const v1::GetJobRequest* request,
                                    v1::JobInfo* response) {
  v1::JobInfo* job = nullptr;
  const grpc::Status status = Find(request->job(), &job);
  if (status.ok()) *response = *job;
  return status;
}

grpc::Status FakeJobService::ListJobs(grpc::ServerContext*,
                                      const v1::ListJobsRequest* request,
                                      v1::ListJobsResponse* response) {
  for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job) {
    if (request->all() || !(*job)->spec().has_action()) {
      *response->add_jobs() = **job;
    }
  }
  return grpc::Status::OK;
}

grpc::Status FakeJobService::GetReport(grpc::ServerContext*,
                                       const v1::GetJobRequest* request,
                                       v1::JobReport* response) {
  v1::JobInfo* job = nullptr;
  const grpc::Status status = Find(request->job(), &job);
  if (status.ok() && job->id() == job_without_report) {
    return {grpc::StatusCode::NOT_FOUND, "deleted meanwhile"};
  }
  if (status.ok()) *response = report;
  return status;
}

grpc::Status FakeJobService::CancelJob(grpc::ServerContext*,
                                       const v1::CancelJobRequest* request,
                                       v1::JobInfo* response) {
  v1::JobInfo* job = nullptr;
  const grpc::Status status = Find(request->job(), &job);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  cancelled_.push_back(job->id());
  *response = *job;
  response->set_state(v1::JOB_STATE_CANCELLED);
  return grpc::Status::OK;
}

grpc::Status FakeJobService::DeleteJob(grpc::ServerContext*,
                                       const v1::GetJobRequest* request,
                                       v1::DeleteJobResponse* response) {
  v1::JobInfo* job = nullptr;
  const grpc::Status status = Find(request->job(), &job);
  if (status.ok()) response->set_id(job->id());
  return status;
}

grpc::Status FakeJobService::WatchJob(
    grpc::ServerContext* context, const v1::WatchJobRequest* request,
    grpc::ServerWriter<v1::JobUpdate>* writer) {
  v1::JobInfo* job = nullptr;
  const grpc::Status status = Find(request->job(), &job);
  if (!status.ok()) return status;
  std::optional<int> breaks_after;
  {
    absl::MutexLock lock(&mutex_);
    watched_after_.push_back(request->after_sequence());
    streamed_.push_back(request->job());
    if (watches_ < watch_breaks.size()) breaks_after = watch_breaks[watches_];
    ++watches_;
  }
  int sent = 0;
  for (const v1::JobUpdate& update : updates_[job->id()]) {
    if (update.sequence() <= request->after_sequence()) continue;
    if (breaks_after == sent) {
      return {grpc::StatusCode::UNAVAILABLE, "connection lost"};
    }
    writer->Write(update);
    ++sent;
  }
  if (!watch_hangs) return grpc::Status::OK;
  if (!watch_is_idle.HasBeenNotified()) watch_is_idle.Notify();
  while (!context->IsCancelled()) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  return grpc::Status::CANCELLED;
}

grpc::Status FakeJobService::ListWorkers(grpc::ServerContext*,
                                         const v1::ListWorkersRequest*,
                                         v1::ListWorkersResponse* response) {
  *response = workers;
  return grpc::Status::OK;
}

grpc::Status FakeJobService::ListCheckpoints(
    grpc::ServerContext*, const v1::GetJobRequest* request,
    v1::ListCheckpointsResponse* response) {
  v1::JobInfo* job = nullptr;
  const grpc::Status status = Find(request->job(), &job);
  if (status.ok()) *response = checkpoints;
  return status;
}

grpc::Status FakeJobService::ListEvents(grpc::ServerContext*,
                                        const v1::GetJobRequest*,
                                        v1::ListEventsResponse* response) {
  *response = events;
  return grpc::Status::OK;
}

grpc::Status FakeJobService::GetSteps(
    grpc::ServerContext*, const v1::GetStepsRequest* request,
    grpc::ServerWriter<v1::StepReport>* writer) {
  for (const v1::StepReport& step : steps) {
    if (step.step() > request->after_step()) writer->Write(step);
  }
  return grpc::Status::OK;
}

grpc::Status FakeJobService::GetLogs(grpc::ServerContext*,
                                     const v1::GetLogsRequest* request,
                                     grpc::ServerWriter<v1::LogLine>* writer) {
  v1::JobInfo* job = nullptr;
  const grpc::Status status = Find(request->job(), &job);
  if (!status.ok()) return status;
  bool breaks = false;
  {
    absl::MutexLock lock(&mutex_);
    streamed_.push_back(request->job());
    breaks = log_break_after >= 0 && log_calls_++ == 0;
  }
  int sent = 0;
  for (const v1::LogLine& line : log_lines) {
    if (request->has_rank() && line.rank() != request->rank()) continue;
    if (breaks && sent == log_break_after) {
      return {grpc::StatusCode::UNAVAILABLE, "connection lost"};
    }
    writer->Write(line);
    ++sent;
  }
  return grpc::Status::OK;
}

grpc::Status FakeJobService::GetServerInfo(grpc::ServerContext*,
                                           const v1::GetServerInfoRequest*,
                                           v1::ServerInfo* response) {
  response->set_version("fake");
  return grpc::Status::OK;
}

}  // namespace lockstep::testing
