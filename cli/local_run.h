// LocalRun: `run`, a job from its file to its report on a cluster of its own.
#ifndef LOCKSTEP_CLI_LOCAL_RUN_H_
#define LOCKSTEP_CLI_LOCAL_RUN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cli/cluster_session.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/local_cluster.h"
#include "cli/output_format.h"
#include "cli/progress_view.h"
#include "cli/steps_file.h"
#include "cli/stop_token.h"
#include "lockstep/v1/job.pb.h"

namespace lockstep {

struct LocalRunOptions {
  std::string job_file;
  // Values of --set.
  std::vector<std::string> settings;
  // Workers of one device each. Absent: the job's devices, else 1.
  std::optional<int64_t> local;
  // What each device has; replaces the job's request.
  std::optional<uint64_t> memory_per_device;
  // Empty: none.
  std::string steps_out;
  // Empty: from scratch.
  std::string resume;
  // kTable is a report for people on stderr.
  OutputFormat format = OutputFormat::kTable;
  // --dir is used; --coordinator must not be given.
  ClusterFlags flags;
};

// Threads: Interrupt may be called from any thread while Run runs.
class LocalRun {
 public:
  LocalRun(LocalRunOptions options, Console& console);

  // Returns when the job has ended and nothing is left running.
  absl::StatusOr<ExitCode> Run();

  // For InterruptHandler: the first cancels the job, the second kills all.
  absl::Duration Interrupt(int count);

 private:
  // Reads and checks the job; nothing has been started yet.
  absl::Status Prepare();
  absl::Status StartCluster();
  absl::StatusOr<std::string> Submit();
  absl::StatusOr<ExitCode> FollowToTheEnd(const std::string& job_id);
  // Runs on a thread of its own: cancels the job once that is asked for. Not in
  // Interrupt, which must be free for the second Ctrl-C.
  void CancelWhenAsked();

  const LocalRunOptions options_;
  Console& console_;
  ProgressView view_;
  StopToken stop_;
  v1::JobSpec spec_;
  std::unique_ptr<StepsFile> steps_file_;

  absl::Mutex mutex_;
  // Made by Run, gone with it.
  std::unique_ptr<LocalCluster> cluster_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<CoordinatorClient> client_ ABSL_GUARDED_BY(mutex_);
  // From the call of Submit on the job may exist, even if it can't be named
  // yet: it is cancelled, not forgotten.
  bool submitted_ ABSL_GUARDED_BY(mutex_) = false;
  std::string job_id_ ABSL_GUARDED_BY(mutex_);
  bool cancel_asked_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LOCAL_RUN_H_
