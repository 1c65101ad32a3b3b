#include "worker/data/child_process.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/time/clock.h"
#include "common/files/file_error.h"
#include "common/files/unique_fd.h"
#include "common/status_macros.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

// What a child starts with: own files, default signals, nothing else open.
class SpawnSettings {
 public:
  explicit SpawnSettings(const std::string& stderr_path) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, 2, stderr_path.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Ends and reaps a child that has not been waited for.
class ChildGuard {
 public:
  explicit ChildGuard(pid_t pid) : pid_(pid) {}
  ~ChildGuard() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);  // soon: it was killed
  }
  void Release() { pid_ = 0; }

 private:
  pid_t pid_;
};

}  // namespace

absl::StatusOr<int> RunChild(const ChildProcess& child) {
  const std::string& program = child.command.front();
  std::vector<char*> arguments;
  for (const std::string& argument : child.command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  const SpawnSettings settings(child.stderr_path);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, program.c_str(), settings.actions(),
                  settings.attributes(), arguments.data(), environ);
  if (error != 0) return FileError(error, "start", program);
  ChildGuard guard(pid);

  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) return FileError(errno, "watch", program);
  const absl::Time deadline = absl::Now() + child.timeout;
  while (true) {
    pollfd watched = {pidfd.get(), POLLIN, 0};
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(StrCat(
          program, " took more than ", absl::FormatDuration(child.timeout)));
    }
    const auto wait_ms = static_cast<int>(
        absl::ToInt64Milliseconds(std::min(left, absl::Seconds(1))) + 1);
    const int ready = poll(&watched, 1, wait_ms);
    if (ready > 0) break;
    if (ready < 0 && errno != EINTR) return FileError(errno, "watch", program);
    if (child.alive) child.alive();
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return FileError(errno, "wait for", program);
  }
  guard.Release();
  if (WIFSIGNALED(status)) {
    return absl::InternalError(
        StrCat(program, " was ended by signal ", WTERMSIG(status)));
  }
  return WEXITSTATUS(status);
}

absl::StatusOr<std::string> ProgramFolder() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length < 0) return FileError(errno, "read", "/proc/self/exe");
  const std::string program(path, static_cast<size_t>(length));
  return program.substr(0, program.rfind('/'));
}

}  // namespace lockstep
