// CoordinatorClient: the coordinator's JobService as plain calls with absl
// Statuses, deadlines and retries.
//
// A call that finds no coordinator is repeated for `patience`; then it ends
// with UNAVAILABLE, which names the address and the reason. All calls are safe
// to repeat (Submit by its request id). A stopped token ends any call with
// CANCELLED.
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_CLI_COORDINATOR_CLIENT_H_
#define LOCKSTEP_CLI_COORDINATOR_CLIENT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/stop_token.h"
#include "lockstep/v1/job_service.grpc.pb.h"

namespace lockstep {

class CoordinatorClient {
 public:
  struct Options {
    // HOST:PORT.
    std::string address;
    // How long a coordinator may be away: at the first contact, in a single
    // call, and while a job is followed.
    absl::Duration contact_patience = absl::Seconds(3);
    absl::Duration call_patience = absl::Seconds(10);
    absl::Duration follow_patience = absl::Seconds(60);
    // Ends calls early. Must outlive the client.
    StopToken* stop = nullptr;
  };

  // Asks the coordinator for its version, within `contact_patience`.
  static absl::StatusOr<std::unique_ptr<CoordinatorClient>> Connect(
      Options options);

  const std::string& address() const { return options_.address; }
  // What Connect was told.
  const v1::ServerInfo& server() const { return server_; }

  // Sets the request id.
  absl::StatusOr<v1::SubmitResponse> Submit(v1::SubmitRequest request);
  absl::StatusOr<v1::JobInfo> GetJob(const std::string& job);
  absl::StatusOr<v1::ListJobsResponse> ListJobs(bool all);
  absl::StatusOr<v1::JobReport> GetReport(const std::string& job);
  absl::StatusOr<v1::JobInfo> CancelJob(const std::string& job,
                                        const std::string& reason);
  absl::StatusOr<v1::DeleteJobResponse> DeleteJob(const std::string& job);
  absl::StatusOr<v1::ListWorkersResponse> ListWorkers();
  absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(
      const std::string& job);
  // `job` may be empty: of all jobs.
  absl::StatusOr<v1::ListEventsResponse> ListEvents(const std::string& job);

  // Hands each step to `sink`, in order.
  absl::Status GetSteps(const v1::GetStepsRequest& request,
                        const std::function<void(const v1::StepReport&)>& sink);

  // Hands each line to `sink`. A followed stream that breaks is opened again
  // and goes on where it was, unless the request has `tail`. No deadline with
  // `follow`: it ends with the job.
  absl::Status GetLogs(const v1::GetLogsRequest& request,
                       const std::function<void(const v1::LogLine&)>& sink);

  // Hands everything that happens to `job` to `sink`, from its beginning, and
  // returns the job as it ended. `sink` may return false to end early; the job
  // as last seen is returned then. A broken or silent stream is opened again
  // and misses nothing. No deadline: it ends with the job.
  absl::StatusOr<v1::JobInfo> Watch(
      const std::string& job,
      const std::function<bool(const v1::JobUpdate&)>& sink);

 private:
  CoordinatorClient(Options options, std::unique_ptr<StopToken> own_stop);

  // One unary call, repeated while the coordinator is away.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(
      grpc::Status (v1::JobService::Stub::*method)(grpc::ClientContext*,
                                                   const Request&, Response*),
      const Request& request);

  // Repeats `attempt` while it ends with UNAVAILABLE, for `patience` from the
  // last time `progressed` was set.
  absl::Status Persist(
      absl::Duration patience,
      const std::function<absl::Status(bool& progressed)>& attempt);

  // Waits until a coordinator answers, at most `timeout`.
  void WaitUntilThere(absl::Duration timeout);

  const Options options_;
  // Used when the options have none.
  const std::unique_ptr<StopToken> own_stop_;
  StopToken& stop_;
  const std::unique_ptr<v1::JobService::Stub> stub_;
  // Both are set by Connect, before the client is handed out.
  v1::ServerInfo server_;
  bool connected_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_COORDINATOR_CLIENT_H_
