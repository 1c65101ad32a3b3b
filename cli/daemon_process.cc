#include "cli/daemon_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(10);
// A child that lived less than this ended quickly.
constexpr absl::Duration kQuick = absl::Seconds(5);
constexpr int kMostQuickEnds = 5;
constexpr absl::Duration kRestartPause = absl::Milliseconds(100);
constexpr int kExitCannotStart = 2;
constexpr int kTailLines = 8;

// Runs in the child, between fork and exec: only calls that are safe there.
[[noreturn]] void ExecuteChild(const char* program, char* const* arguments,
                               int log, int error_pipe, pid_t parent) {
  // Of its own process group, so that Ctrl-C reaches only the command line.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above.
  if (getppid() != parent) _exit(1);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(program, arguments);
  const int error = errno;
  [[maybe_unused]] const ssize_t wrote =
      write(error_pipe, &error, sizeof(error));
  _exit(1);
}

std::string ReadFrom(const std::string& path, off_t start) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(start);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The last lines of the log, indented.
std::string Tail(const std::string& path, off_t start) {
  std::vector<std::string> lines =
      absl::StrSplit(ReadFrom(path, start), '\n', absl::SkipEmpty());
  if (lines.size() > kTailLines) {
    lines.erase(lines.begin(), lines.end() - kTailLines);
  }
  if (lines.empty()) return "";
  return absl::StrCat("; its last lines in ", path, ":\n  ",
                      absl::StrJoin(lines, "\n  "));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DaemonProcess>> DaemonProcess::Start(
    Options options) {
  std::unique_ptr<DaemonProcess> daemon(new DaemonProcess(std::move(options)));
  struct stat log = {};
  if (stat(daemon->options_.log_path.c_str(), &log) == 0) {
    daemon->log_start_ = log.st_size;
  }
  {
    absl::MutexLock lock(&daemon->mutex_);
    daemon->arguments_ = daemon->options_.arguments;
  }
  daemon->thread_ = std::thread([&daemon = *daemon] { daemon.Loop(); });
  absl::MutexLock lock(&daemon->mutex_);
  // Fork and exec take no longer than the system needs.
  daemon->mutex_.Await(absl::Condition(&daemon->started_));
  RETURN_IF_ERROR(daemon->start_status_);
  return daemon;
}

DaemonProcess::~DaemonProcess() {
  Kill();
  thread_.join();
}

absl::StatusOr<pid_t> DaemonProcess::Spawn(
    const std::vector<std::string>& arguments) {
  const int log = open(options_.log_path.c_str(),
                       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) return absl::ErrnoToStatus(errno, options_.log_path);
  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) {
    const int error = errno;
    close(log);
    return absl::ErrnoToStatus(error, "pipe");
  }
  std::vector<char*> words = {const_cast<char*>(options_.program.c_str())};
  for (const std::string& argument : arguments) {
    words.push_back(const_cast<char*>(argument.c_str()));
  }
  words.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    ExecuteChild(options_.program.c_str(), words.data(), log, error_pipe[1],
                 parent);
  }
  const int fork_error = errno;
  close(log);
  close(error_pipe[1]);
  int exec_error = 0;
  if (child > 0) {
    ssize_t got = 0;
    // Exec closes the pipe: nothing to read means that it worked.
    do {
      got = read(error_pipe[0], &exec_error, sizeof(exec_error));
    } while (got < 0 && errno == EINTR);
    if (got != sizeof(exec_error)) exec_error = 0;
  }
  close(error_pipe[0]);
  if (child < 0) return absl::ErrnoToStatus(fork_error, "fork");
  if (exec_error != 0) {
    waitpid(child, nullptr, 0);
    return absl::ErrnoToStatus(
        exec_error, absl::StrCat("can't start the ", options_.title, ", ",
                                 options_.program));
  }
  return child;
}

void DaemonProcess::Loop() {
  int quick_ends = 0;
  while (true) {
    std::vector<std::string> arguments;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) break;
      arguments = arguments_;
    }
    const auto child = Spawn(arguments);
    const absl::Time born = absl::Now();
    {
      absl::MutexLock lock(&mutex_);
      if (!started_) {
        started_ = true;
        start_status_ = child.status();
      }
      if (!child.ok()) break;
      child_ = *child;
      last_pid_ = *child;
      // A stop that came while the child was born.
      if (stopping_) kill(*child, SIGKILL);
    }
    // WNOWAIT keeps the pid ours, so that Signal can't hit a stranger.
    siginfo_t info = {};
    while (waitid(P_PID, *child, &info, WEXITED | WNOWAIT) != 0 &&
           errno == EINTR) {
    }
    absl::MutexLock lock(&mutex_);
    child_.reset();
    while (waitpid(*child, &wait_status_, 0) < 0 && errno == EINTR) {
    }
    if (!restarts_ || stopping_) break;
    quick_ends = absl::Now() - born < kQuick ? quick_ends + 1 : 1;
    if (quick_ends > kMostQuickEnds) break;
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_),
                            kRestartPause * (quick_ends - 1));
  }
  absl::MutexLock lock(&mutex_);
  ended_ = true;
}

absl::StatusOr<std::string> DaemonProcess::WaitForLine(
    const std::string& words, absl::Duration timeout,
    const StopToken& stop) const {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    // Looked at before the log, which is complete once the child has ended.
    const bool over = ended();
    const std::string log = ReadFrom(options_.log_path, log_start_);
    for (const absl::string_view line : absl::StrSplit(log, '\n')) {
      const size_t at = line.find(words);
      // The last line may still be on its way.
      const bool whole = line.data() + line.size() != log.data() + log.size();
      if (at != absl::string_view::npos && whole) {
        return std::string(line.substr(at + words.size()));
      }
    }
    if (over) {
      absl::MutexLock lock(&mutex_);
      const bool refused = WIFEXITED(wait_status_) &&
                           WEXITSTATUS(wait_status_) == kExitCannotStart;
      const std::string why =
          absl::StrCat("the ", options_.title, " could not start",
                       Tail(options_.log_path, log_start_));
      return refused ? absl::FailedPreconditionError(why)
                     : absl::InternalError(why);
    }
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the ", options_.title, " did not say \"", words, "\" within ",
          absl::FormatDuration(timeout), Tail(options_.log_path, log_start_)));
    }
    if (stop.WaitFor(kPollInterval)) return stop.Check();
  }
}

void DaemonProcess::RestartWith(std::vector<std::string> arguments) {
  absl::MutexLock lock(&mutex_);
  arguments_ = std::move(arguments);
  restarts_ = true;
}

pid_t DaemonProcess::pid() const {
  absl::MutexLock lock(&mutex_);
  return last_pid_;
}

bool DaemonProcess::ended() const {
  absl::MutexLock lock(&mutex_);
  return ended_;
}

std::string DaemonProcess::EndText() const {
  absl::MutexLock lock(&mutex_);
  std::string how = "still runs";
  if (ended_ && WIFSIGNALED(wait_status_)) {
    how = absl::StrCat("was ended by signal ", WTERMSIG(wait_status_), " (",
                       strsignal(WTERMSIG(wait_status_)), ")");
  } else if (ended_) {
    how = absl::StrCat("ended with exit code ", WEXITSTATUS(wait_status_));
  }
  return absl::StrCat("the ", options_.title, " ", how,
                      Tail(options_.log_path, log_start_));
}

void DaemonProcess::Signal(int signal) {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
  if (child_.has_value()) kill(*child_, signal);
}

void DaemonProcess::Terminate() { Signal(SIGTERM); }

void DaemonProcess::Kill() { Signal(SIGKILL); }

bool DaemonProcess::WaitForEnd(absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&ended_), timeout);
  return ended_;
}

}  // namespace lockstep
