#include "tests/testing/process_list.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

namespace lockstep {
namespace testing {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream contents;
  contents << stream.rdbuf();
  return contents.str();
}

bool IsZombie(const std::string& folder) {
  // "PID (NAME) STATE ..."; the name may hold anything.
  const std::string stat = ReadFile(folder + "/stat");
  const size_t end = stat.rfind(')');
  return end == std::string::npos || end + 2 >= stat.size() ||
         stat[end + 2] == 'Z' || stat[end + 2] == 'X';
}

}  // namespace

std::vector<MarkedProcess> FindMarked(const std::string& marker) {
  const std::string wanted = absl::StrCat(kMarkerVariable, "=", marker);
  std::vector<MarkedProcess> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end;
       !error && entry != end; entry.increment(error)) {
    MarkedProcess process;
    const std::string folder = entry->path();
    if (!absl::SimpleAtoi(entry->path().filename().string(), &process.pid)) {
      continue;
    }
    const std::string environment =
        absl::StrCat(std::string(1, '\0'), ReadFile(folder + "/environ"));
    if (environment.find(std::string(1, '\0') + wanted + '\0') ==
            std::string::npos ||
        IsZombie(folder)) {
      continue;
    }
    process.command_line = ReadFile(folder + "/cmdline");
    process.program =
        std::filesystem::path(process.command_line.c_str()).filename();
    std::replace(process.command_line.begin(), process.command_line.end(), '\0',
                 ' ');
    found.push_back(std::move(process));
  }
  std::sort(found.begin(), found.end(),
            [](const MarkedProcess& a, const MarkedProcess& b) {
              return a.pid < b.pid;
            });
  return found;
}

std::vector<MarkedProcess> FindMarked(const std::string& marker,
                                      const std::string& program) {
  std::vector<MarkedProcess> found = FindMarked(marker);
  std::erase_if(found, [&](const MarkedProcess& process) {
    return process.program != program;
  });
  return found;
}

absl::Status WaitForNoneMarked(const std::string& marker,
                               absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  std::vector<MarkedProcess> left = FindMarked(marker);
  while (!left.empty()) {
    const absl::Status ended =
        WaitForProcessEnd(left.front().pid, deadline - absl::Now());
    left = FindMarked(marker);
    if (!ended.ok() && !left.empty()) {
      return absl::DeadlineExceededError(absl::StrCat(
          "still running after ", absl::FormatDuration(timeout), ":\n",
          absl::StrJoin(
              left, "\n", [](std::string* out, const MarkedProcess& process) {
                absl::StrAppend(out, process.pid, " ", process.command_line);
              })));
    }
  }
  return absl::OkStatus();
}

absl::Status WaitForProcessEnd(pid_t pid, absl::Duration timeout) {
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) {
    return errno == ESRCH ? absl::OkStatus()
                          : absl::ErrnoToStatus(errno, "pidfd_open");
  }
  pollfd fd = {pidfd, POLLIN, 0};
  const absl::Time deadline = absl::Now() + timeout;
  int ready = 0;
  do {
    const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
    ready = poll(&fd, 1, static_cast<int>(std::max<int64_t>(left, 0)));
  } while (ready < 0 && errno == EINTR);
  close(pidfd);
  if (ready > 0) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      "process ", pid, " still runs after ", absl::FormatDuration(timeout)));
}

}  // namespace testing
}  // namespace lockstep
