// DaemonProcess: a daemon of the local cluster, as a child of this process. It
// dies with this process, even by SIGKILL (PR_SET_PDEATHSIG). Its stdout and
// stderr go to the end of a log file.
//
// Owns a thread that starts the child and waits for it; the kernel ties the
// child's life to that thread. Threads: all functions may be called from any
// thread.
#ifndef LOCKSTEP_CLI_DAEMON_PROCESS_H_
#define LOCKSTEP_CLI_DAEMON_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cli/stop_token.h"

namespace lockstep {

class DaemonProcess {
 public:
  struct Options {
    // What messages call it: "coordinator", "worker 1".
    std::string title;
    std::string program;
    std::vector<std::string> arguments;
    std::string log_path;
  };

  // Starts the child. NOT_FOUND if there is no such program.
  static absl::StatusOr<std::unique_ptr<DaemonProcess>> Start(Options options);
  // Kills the child if it still lives, and waits for it.
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // What follows `words` in the first line of the child's log that begins with
  // them, or holds them after a space. Polls the file.
  //   FAILED_PRECONDITION: the child ended before, by exit code 2 (it can't
  //     bind or lock); INTERNAL: otherwise; both with its last lines.
  //   DEADLINE_EXCEEDED, CANCELLED.
  absl::StatusOr<std::string> WaitForLine(const std::string& words,
                                          absl::Duration timeout,
                                          const StopToken& stop) const;

  // From now on a child that ends by itself is started again with `arguments`.
  // Gives up after several quick ends in a row.
  void RestartWith(std::vector<std::string> arguments);

  // The newest child's; it may have ended.
  pid_t pid() const;
  // No child lives and none will be started.
  bool ended() const;
  // Why, with the last lines of the log: for messages.
  std::string EndText() const;

  // Asks the child to end by SIGTERM; no further one is started.
  void Terminate();
  // SIGKILL.
  void Kill();
  // Waits for its end; says whether it has come.
  bool WaitForEnd(absl::Duration timeout) const;

 private:
  explicit DaemonProcess(Options options) : options_(std::move(options)) {}

  void Loop();
  // Forks and executes; the exec's errno if that fails.
  absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& arguments);
  void Signal(int signal);

  const Options options_;
  // Size of the log before the child was started: older lines aren't its.
  off_t log_start_ = 0;

  mutable absl::Mutex mutex_;
  std::vector<std::string> arguments_ ABSL_GUARDED_BY(mutex_);
  bool restarts_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Absent while no child lives; set before Start returns.
  std::optional<pid_t> child_ ABSL_GUARDED_BY(mutex_);
  pid_t last_pid_ ABSL_GUARDED_BY(mutex_) = 0;
  // As waitpid gave it.
  int wait_status_ ABSL_GUARDED_BY(mutex_) = 0;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status start_status_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_DAEMON_PROCESS_H_
