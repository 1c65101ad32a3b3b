#include "tests/testing/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log.h"

namespace lockstep {
namespace testing {
namespace {

std::vector<std::string> MergedEnvironment(
    const std::map<std::string, std::string>& extra) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    if (!extra.contains(name)) merged.emplace_back(text);
  }
  for (const auto& [name, value] : extra) {
    merged.push_back(absl::StrCat(name, "=", value));
  }
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Sets `chunk` to what `fd` has; false at its end.
bool ReadChunk(int fd, std::string& chunk) {
  chunk.resize(4096);
  const ssize_t bytes = read(fd, chunk.data(), chunk.size());
  chunk.resize(std::max<ssize_t>(bytes, 0));
  if (bytes < 0) return errno == EINTR || errno == EAGAIN;
  return bytes > 0;
}

std::optional<std::string> FindLine(const std::string& output,
                                    std::string_view text) {
  size_t start = 0;
  for (size_t end = output.find('\n'); end != std::string::npos;
       start = end + 1, end = output.find('\n', start)) {
    const std::string_view line(output.data() + start, end - start);
    if (line.find(text) != std::string_view::npos) return std::string(line);
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const ProcessOptions& options) {
  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment = MergedEnvironment(options.environment);
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(environment);
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0) {
    return absl::ErrnoToStatus(errno, "pipe2");
  }
  if (pipe2(err, O_CLOEXEC) != 0) {
    close(out[0]);
    close(out[1]);
    return absl::ErrnoToStatus(errno, "pipe2");
  }
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    if (options.directory.empty() || chdir(options.directory.c_str()) == 0) {
      execve(argv[0], argv.data(), envp.data());
    }
    dprintf(STDERR_FILENO, "starting %s: %s\n", argv[0], strerror(errno));
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  if (pid < 0) {
    close(out[0]);
    close(err[0]);
    return absl::InternalError(absl::StrCat("fork: ", strerror(errno)));
  }
  setpgid(pid, pid);  // in the parent too, so that SignalGroup works at once
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, out[0], err[0]));
}

ChildProcess::ChildProcess(pid_t pid, int stdout_fd, int stderr_fd)
    : pid_(pid),
      stdout_fd_(stdout_fd),
      stderr_fd_(stderr_fd),
      reader_([this] { Run(); }) {}

ChildProcess::~ChildProcess() {
  Signal(SIGKILL);
  reader_.join();
  close(stdout_fd_);
  close(stderr_fd_);
}

// Reads until the process has ended. Descendants that outlive it may keep the
// pipes open: what is there by then is read, and no end is waited for.
void ChildProcess::Run() {
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  CHECK(pidfd >= 0) << "pidfd_open: " << strerror(errno);
  bool out_open = true, err_open = true, alive = true;
  while (true) {
    pollfd fds[] = {{out_open ? stdout_fd_ : -1, POLLIN, 0},
                    {err_open ? stderr_fd_ : -1, POLLIN, 0},
                    {alive ? pidfd : -1, POLLIN, 0}};
    // Once it has ended only what lies ready is taken.
    const int ready = poll(fds, 3, alive ? -1 : 0);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    std::string chunk;
    if (fds[0].revents != 0) {
      out_open = ReadChunk(stdout_fd_, chunk);
      absl::MutexLock lock(&mutex_);
      stdout_ += chunk;
    }
    if (fds[1].revents != 0) {
      err_open = ReadChunk(stderr_fd_, chunk);
      absl::MutexLock lock(&mutex_);
      stderr_ += chunk;
    }
    if (fds[2].revents != 0) alive = false;
  }
  close(pidfd);
  absl::MutexLock lock(&mutex_);
  int status = 0;
  CHECK(waitpid(pid_, &status, 0) == pid_) << strerror(errno);
  ExitStatus exit;
  if (WIFSIGNALED(status)) {
    exit.signal = WTERMSIG(status);
  } else {
    exit.code = WEXITSTATUS(status);
  }
  exit_ = exit;
}

void ChildProcess::Signal(int signal) {
  absl::MutexLock lock(&mutex_);
  if (!exit_.has_value()) kill(pid_, signal);
}

void ChildProcess::SignalGroup(int signal) {
  absl::MutexLock lock(&mutex_);
  if (!exit_.has_value()) kill(-pid_, signal);
}

absl::StatusOr<std::string> ChildProcess::WaitForLine(Stream stream,
                                                      const std::string& text,
                                                      absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  std::optional<std::string> line;
  const auto found = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    line = FindLine(stream == Stream::kStdout ? stdout_ : stderr_, text);
    return line.has_value() || exit_.has_value();
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&found), timeout)) {
    return absl::DeadlineExceededError(
        absl::StrCat("no line with \"", text, "\" within ",
                     absl::FormatDuration(timeout), "; ", Describe()));
  }
  if (line.has_value()) return *line;
  return absl::UnavailableError(absl::StrCat(
      "the process ended without a line with \"", text, "\"; ", Describe()));
}

absl::StatusOr<ExitStatus> ChildProcess::WaitForExit(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto ended = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return exit_.has_value();
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&ended), timeout)) {
    return absl::DeadlineExceededError(
        absl::StrCat("still running after ", absl::FormatDuration(timeout),
                     "; ", Describe()));
  }
  return *exit_;
}

std::string ChildProcess::Output(Stream stream) const {
  absl::MutexLock lock(&mutex_);
  return stream == Stream::kStdout ? stdout_ : stderr_;
}

std::string ChildProcess::Describe() const {
  return absl::StrCat("stdout:\n", stdout_, "\nstderr:\n", stderr_);
}

}  // namespace testing
}  // namespace lockstep
