// JobService over gRPC: translates and delegates. What changes a running job
// goes to the gang supervisor's loop; the rest is read from the job table.
//
// Threads: gRPC's, one per call. Calls that stream block theirs; they are
// limited in number, and end when their client goes or Stop is called.
#ifndef LOCKSTEP_COORDINATOR_RPC_JOB_SERVICE_H_
#define LOCKSTEP_COORDINATOR_RPC_JOB_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/metrics/registry.h"
#include "common/serial_loop.h"
#include "coordinator/jobs/job_table.h"
#include "coordinator/launch/gang_supervisor.h"
#include "coordinator/membership/worker_registry.h"
#include "lockstep/v1/job_service.grpc.pb.h"

namespace lockstep {

class JobServiceImpl final : public v1::JobService::Service {
 public:
  struct Deps {
    JobTable& jobs;
    WorkerRegistry& workers;
    // Lives on `loop`.
    GangSupervisor& supervisor;
    SerialLoop& loop;
    MetricsRegistry& metrics;
    Clock& clock;
    std::string version;
  };
  explicit JobServiceImpl(Deps deps);

  // Ends the streams that are open, and those to come.
  void Stop() { stopped_ = true; }
  // Watches, logs and steps that are being streamed.
  int open_streams() const { return streams_; }

  grpc::Status Submit(grpc::ServerContext* context,
                      const v1::SubmitRequest* request,
                      v1::SubmitResponse* response) override;
  grpc::Status GetJob(grpc::ServerContext* context,
                      const v1::GetJobRequest* request,
                      v1::JobInfo* response) override;
  grpc::Status ListJobs(grpc::ServerContext* context,
                        const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status GetReport(grpc::ServerContext* context,
                         const v1::GetJobRequest* request,
                         v1::JobReport* response) override;
  grpc::Status CancelJob(grpc::ServerContext* context,
                         const v1::CancelJobRequest* request,
                         v1::JobInfo* response) override;
  grpc::Status DeleteJob(grpc::ServerContext* context,
                         const v1::GetJobRequest* request,
                         v1::DeleteJobResponse* response) override;
  grpc::Status WatchJob(grpc::ServerContext* context,
                        const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::JobUpdate>* writer) override;
  grpc::Status ListWorkers(grpc::ServerContext* context,
                           const v1::ListWorkersRequest* request,
                           v1::ListWorkersResponse* response) override;
  grpc::Status ListCheckpoints(grpc::ServerContext* context,
                               const v1::GetJobRequest* request,
                               v1::ListCheckpointsResponse* response) override;
  grpc::Status ListEvents(grpc::ServerContext* context,
                          const v1::GetJobRequest* request,
                          v1::ListEventsResponse* response) override;
  grpc::Status GetSteps(grpc::ServerContext* context,
                        const v1::GetStepsRequest* request,
                        grpc::ServerWriter<v1::StepReport>* writer) override;
  grpc::Status GetLogs(grpc::ServerContext* context,
                       const v1::GetLogsRequest* request,
                       grpc::ServerWriter<v1::LogLine>* writer) override;
  grpc::Status GetServerInfo(grpc::ServerContext* context,
                             const v1::GetServerInfoRequest* request,
                             v1::ServerInfo* response) override;

 private:
  absl::Status DoSubmit(const v1::SubmitRequest& request,
                        v1::SubmitResponse& response);
  absl::Status DoGetReport(const std::string& name, v1::JobReport& report);
  absl::Status DoCancel(const v1::CancelJobRequest& request,
                        v1::JobInfo& response);
  absl::Status DoWatch(grpc::ServerContext& context,
                       const v1::WatchJobRequest& request,
                       grpc::ServerWriter<v1::JobUpdate>& writer);
  absl::Status DoGetLogs(grpc::ServerContext& context,
                         const v1::GetLogsRequest& request,
                         grpc::ServerWriter<v1::LogLine>& writer);
  absl::Status DoGetSteps(const v1::GetStepsRequest& request,
                          grpc::ServerWriter<v1::StepReport>& writer);
  // OK while a stream may go on.
  absl::Status CheckOpen(const grpc::ServerContext& context) const;

  const Deps deps_;
  const absl::Time started_;
  std::atomic<bool> stopped_{false};
  std::atomic<int> streams_{0};
};

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_RPC_JOB_SERVICE_H_
