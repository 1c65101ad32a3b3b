// FakeJobService: a JobService in this process, on a free port, that answers
// what a test told it to.
//
//   FakeJobService service;
//   service.AddJob("kjv-1", v1::JOB_STATE_SUCCEEDED);
//   RunCommandLine({"get", "jobs", "--coordinator", service.address()}, ...);
//
// Threads: set everything up before the first call.
#ifndef LOCKSTEP_TESTS_UNIT_CLI_FAKE_JOB_SERVICE_H_
#define LOCKSTEP_TESTS_UNIT_CLI_FAKE_JOB_SERVICE_H_

#include <grpcpp/server.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "lockstep/v1/job_service.grpc.pb.h"

namespace lockstep::testing {

class FakeJobService final : public v1::JobService::Service {
 public:
  FakeJobService();
  ~FakeJobService() override;

  const std::string& address() const { return address_; }

  // A job whose watch stream has one update: its state.
  v1::JobInfo& AddJob(const std::string& id, v1::JobState state);
  // Appends to the job's watch stream; sequences are filled in.
  void AddUpdate(const std::string& id, v1::JobUpdate update);
  // Appends the update of a state.
  void AddState(const std::string& id, v1::JobState state,
                const std::string& reason = "");

  // What the calls answer.
  v1::SubmitResponse submit_response;
  v1::ListWorkersResponse workers;
  v1::ListCheckpointsResponse checkpoints;
  v1::ListEventsResponse events;
  std::vector<v1::StepReport> steps;
  std::vector<v1::LogLine> log_lines;
  v1::JobReport report;
  // GetReport doesn't know this job.
  std::string job_without_report;
  // If not OK, every Submit fails so.
  grpc::Status submit_status = grpc::Status::OK;
  // So many first Submits store the job, but their answer gets lost.
  int lost_submit_answers = 0;
  // The stream breaks after so many updates, once for each entry.
  std::vector<int> watch_breaks;
  int log_break_after = -1;
  // Watch streams stay open at their end until the client leaves.
  bool watch_hangs = false;

  // What was asked.
  std::vector<v1::SubmitRequest> submits() const;
  std::vector<int64_t> watched_after() const;
  // Jobs of WatchJob and GetLogs, as they were named.
  std::vector<std::string> streamed() const;
  std::vector<std::string> cancelled() const;
  // Notified when a hanging watch stream has sent all it has.
  absl::Notification watch_is_idle;

  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest*,
                      v1::SubmitResponse*) override;
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest*,
                      v1::JobInfo*) override;
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*,
                        v1::ListJobsResponse*) override;
  grpc::Status GetReport(grpc::ServerContext*, const v1::GetJobRequest*,
                         v1::JobReport*) override;
  grpc::Status CancelJob(grpc::ServerContext*, const v1::CancelJobRequest*,
                         v1::JobInfo*) override;
  grpc::Status DeleteJob(grpc::ServerContext*, const v1::GetJobRequest*,
                         v1::DeleteJobResponse*) override;
  grpc::Status WatchJob(grpc::ServerContext*, const v1::WatchJobRequest*,
                        grpc::ServerWriter<v1::JobUpdate>*) override;
  grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                           v1::ListWorkersResponse*) override;
  grpc::Status ListCheckpoints(grpc::ServerContext*, const v1::GetJobRequest*,
                               v1::ListCheckpointsResponse*) override;
  grpc::Status ListEvents(grpc::ServerContext*, const v1::GetJobRequest*,
                          v1::ListEventsResponse*) override;
  grpc::Status GetSteps(grpc::ServerContext*, const v1::GetStepsRequest*,
                        grpc::ServerWriter<v1::StepReport>*) override;
  grpc::Status GetLogs(grpc::ServerContext*, const v1::GetLogsRequest*,
                       grpc::ServerWriter<v1::LogLine>*) override;
  grpc::Status GetServerInfo(grpc::ServerContext*,
                             const v1::GetServerInfoRequest*,
                             v1::ServerInfo*) override;

 private:
  grpc::Status Find(const std::string& id, v1::JobInfo** job);

  // In the order of their making; the newest is listed first.
  std::vector<std::unique_ptr<v1::JobInfo>> jobs_;
  std::map<std::string, std::vector<v1::JobUpdate>> updates_;

  mutable absl::Mutex mutex_;
  std::vector<v1::SubmitRequest> submits_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> watched_after_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> streamed_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> cancelled_ ABSL_GUARDED_BY(mutex_);
  size_t watches_ ABSL_GUARDED_BY(mutex_) = 0;
  int log_calls_ ABSL_GUARDED_BY(mutex_) = 0;

  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_CLI_FAKE_JOB_SERVICE_H_
