// ChildProcess: a program started by a test, with its output captured line by
// line as it comes.
//
//   ASSERT_OK_AND_ASSIGN(auto child, ChildProcess::Start({.arguments =
//   {...}})); ASSERT_OK_AND_ASSIGN(std::string line,
//                        child->WaitForLine(kStderr, "grpc listening on",
//                                           absl::Seconds(10)));
//   child->Signal(SIGINT);
//   ASSERT_OK_AND_ASSIGN(ExitStatus exit, child->WaitForExit(timeout));
//
// The destructor kills the process with SIGKILL and reaps it. The process leads
// a process group of its own, as a command typed in a terminal does.
//
// Threads: all functions may be called from any thread. One thread inside reads
// the output and waits for the end.
// Errors: DEADLINE_EXCEEDED with the output so far; INTERNAL if the program
// can't be started; UNAVAILABLE if it ends while a line is awaited.
#ifndef LOCKSTEP_TESTS_TESTING_CHILD_PROCESS_H_
#define LOCKSTEP_TESTS_TESTING_CHILD_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace lockstep {
namespace testing {

enum class Stream { kStdout, kStderr };

struct ExitStatus {
  // Exactly one of the two is set.
  std::optional<int> code;
  std::optional<int> signal;
};

struct ProcessOptions {
  // The program's path and its arguments.
  std::vector<std::string> arguments;
  // Set on top of this process's environment.
  std::map<std::string, std::string> environment;
  // Empty: this process's.
  std::string directory;
};

class ChildProcess {
 public:
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const ProcessOptions& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Sends a signal to the process, or to its whole group as a terminal's
  // Ctrl-C does. Does nothing once it has ended.
  void Signal(int signal);
  void SignalGroup(int signal);

  // The first line, of those since the start, that contains `text`.
  absl::StatusOr<std::string> WaitForLine(Stream stream,
                                          const std::string& text,
                                          absl::Duration timeout);
  absl::StatusOr<ExitStatus> WaitForExit(absl::Duration timeout);

  // All output so far; whole once WaitForExit has returned.
  std::string Output(Stream stream) const;

 private:
  ChildProcess(pid_t pid, int stdout_fd, int stderr_fd);
  void Run();
  std::string Describe() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const pid_t pid_;
  const int stdout_fd_;
  const int stderr_fd_;

  mutable absl::Mutex mutex_;
  std::string stdout_ ABSL_GUARDED_BY(mutex_);
  std::string stderr_ ABSL_GUARDED_BY(mutex_);
  std::optional<ExitStatus> exit_ ABSL_GUARDED_BY(mutex_);

  std::thread reader_;
};

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_CHILD_PROCESS_H_
