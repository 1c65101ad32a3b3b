// RankProcess: one rank's operating-system process.
//
// It is the leader of a process group of its own, has /dev/null as stdin and a
// RankLog's pipe as stdout and stderr, and is the OOM killer's choice before
// the worker. The kernel sends it SIGKILL when the thread that called Start
// ends: call Start from a thread that lives as long as the worker.
//
// RankHandle is what the gang table sees of it.
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_WORKER_AGENT_RANK_PROCESS_H_
#define LOCKSTEP_WORKER_AGENT_RANK_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/agent/rank_log.h"

namespace lockstep {

class RankHandle {
 public:
  virtual ~RankHandle() = default;
  virtual pid_t pid() const = 0;
  // Sends a signal to the process and its group; nothing if it has ended.
  virtual void Signal(int signal) = 0;
  // As /proc/PID/stat has it: 'R', 'S', 'D', 'T'; 'Z' when it has ended.
  virtual char State() const = 0;
  virtual uint64_t ResidentBytes() const = 0;
};

class RankProcess : public RankHandle {
 public:
  struct Options {
    // Absolute path of the program, and its arguments without the name.
    std::string program;
    std::vector<std::string> arguments;
    // All of its environment, as NAME=VALUE.
    std::vector<std::string> environment;
    std::string log_path;
    int64_t log_cap_bytes = kRankLogCapBytes;
    // Called once, from a thread of the process object, when it has ended and
    // its log is written: the status that wait(2) gave, and the last line.
    std::function<void(int wait_status, std::string last_line)> on_exit;
  };

  // NOT_FOUND or UNAVAILABLE if the program can't be run or the log opened.
  static absl::StatusOr<std::unique_ptr<RankProcess>> Start(Options options);
  // Kills what still runs and waits for it (a process in an uninterruptible
  // wait can't be killed: until the kernel lets it go).
  ~RankProcess() override;

  pid_t pid() const override { return pid_; }
  void Signal(int signal) override;
  char State() const override;
  uint64_t ResidentBytes() const override;

 private:
  RankProcess(pid_t pid, std::unique_ptr<RankLog> log, Options options);
  void AwaitExit();

  const pid_t pid_;
  const std::unique_ptr<RankLog> log_;
  const Options options_;
  mutable absl::Mutex mutex_;
  // Once true, the pid may belong to another process.
  bool reaped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread waiter_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_RANK_PROCESS_H_
