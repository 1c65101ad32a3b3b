#include "worker/agent/rank_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "worker/agent/proc_files.h"

namespace lockstep {
namespace {

// Added to a rank's badness, so that the OOM killer takes it, not its worker.
constexpr char kOomScoreAdjustment[] = "300";

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What the child needs, made before the fork.
struct ChildSetup {
  const char* program;
  char* const* arguments;
  char* const* environment;
  int output;      // becomes stdout and stderr
  int error_pipe;  // gets errno if the program can't be run
  pid_t parent;
};

// Runs in the child of a process with threads: async-signal-safe calls only.
[[noreturn]] void RunChild(const ChildSetup& setup) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above.
  if (getppid() != setup.parent) _exit(127);
  for (int signal = 1; signal < NSIG; ++signal) {
    std::signal(signal, SIG_DFL);  // fails for SIGKILL and SIGSTOP: fine
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int oom = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (oom >= 0) {
    // Best effort: some sandboxes forbid it.
    [[maybe_unused]] const ssize_t ignored =
        write(oom, kOomScoreAdjustment, sizeof(kOomScoreAdjustment) - 1);
  }
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
      dup2(setup.output, STDOUT_FILENO) >= 0 &&
      dup2(setup.output, STDERR_FILENO) >= 0) {
    // No descriptor of the worker's reaches the rank.
    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    execve(setup.program, setup.arguments, setup.environment);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored =
      write(setup.error_pipe, &error, sizeof(error));
  _exit(127);
}

// The child's errno, or 0 when its program runs.
int AwaitExec(int error_pipe) {
  int error = 0;
  ssize_t got;
  do {
    // No deadline: the child either runs its program or exits.
    got = read(error_pipe, &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  return got == sizeof(error) ? error : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankProcess>> RankProcess::Start(
    Options options) {
  ASSIGN_OR_RETURN(std::unique_ptr<RankLog> log,
                   RankLog::Open(options.log_path, options.log_cap_bytes));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::UnavailableError(absl::StrCat("pipe: ", std::strerror(errno)));
  }
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  FileDescriptor output = log->TakeWriteEnd();

  std::vector<std::string> arguments = {options.program};
  arguments.insert(arguments.end(), options.arguments.begin(),
                   options.arguments.end());
  std::vector<char*> argument_pointers = Pointers(arguments);
  std::vector<char*> environment_pointers = Pointers(options.environment);
  const ChildSetup setup = {options.program.c_str(),
                            argument_pointers.data(),
                            environment_pointers.data(),
                            output.get(),
                            write_end.get(),
                            getpid()};
  const pid_t pid = fork();
  if (pid < 0) {
    return absl::UnavailableError(absl::StrCat("can't start ", options.program,
                                               ": ", std::strerror(errno)));
  }
  if (pid == 0) RunChild(setup);
  // Also here, so that Signal reaches the group whichever runs first.
  setpgid(pid, pid);
  write_end.Close();
  output.Close();
  if (const int error = AwaitExec(read_end.get()); error != 0) {
    waitpid(pid, nullptr, 0);
    const std::string why =
        absl::StrCat("can't run ", options.program, ": ", std::strerror(error));
    return error == ENOENT ? absl::NotFoundError(why)
                           : absl::UnavailableError(why);
  }
  return std::unique_ptr<RankProcess>(
      new RankProcess(pid, std::move(log), std::move(options)));
}

RankProcess::RankProcess(pid_t pid, std::unique_ptr<RankLog> log,
                         Options options)
    : pid_(pid),
      log_(std::move(log)),
      options_(std::move(options)),
      waiter_([this] { AwaitExit(); }) {}

RankProcess::~RankProcess() {
  Signal(SIGKILL);
  waiter_.join();
}

void RankProcess::Signal(int signal) {
  absl::MutexLock lock(&mutex_);
  if (!reaped_) kill(-pid_, signal);
}

char RankProcess::State() const {
  absl::MutexLock lock(&mutex_);
  return reaped_ ? 'Z' : ProcessState(pid_).value_or('Z');
}

uint64_t RankProcess::ResidentBytes() const {
  absl::MutexLock lock(&mutex_);
  return reaped_ ? 0 : lockstep::ResidentBytes(pid_);
}

void RankProcess::AwaitExit() {
  siginfo_t info;
  // No deadline: waiting for the end is this thread's only work. The process
  // stays a zombie, and its pid its own, until it is reaped below.
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) !=
         0) {
    CHECK(errno == EINTR) << "waitid: " << std::strerror(errno);
  }
  int status = 0;
  {
    absl::MutexLock lock(&mutex_);
    kill(-pid_, SIGKILL);  // whatever the rank may have started
    CHECK(waitpid(pid_, &status, 0) == pid_) << std::strerror(errno);
    reaped_ = true;
  }
  log_->Drain();
  options_.on_exit(status, log_->LastLine());
}

}  // namespace lockstep
