#include "tests/bench/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<Child>> Child::Start(
    const std::vector<std::string>& command) {
  int to_child[2], from_child[2];
  if (pipe2(to_child, O_CLOEXEC) != 0 || pipe2(from_child, O_CLOEXEC) != 0) {
    return absl::InternalError(absl::StrCat("pipe: ", std::strerror(errno)));
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) {
    return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  }
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(to_child[0], STDIN_FILENO);
    dup2(from_child[1], STDOUT_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(to_child[0]);
  close(from_child[1]);
  return std::unique_ptr<Child>(
      new Child(pid, fdopen(to_child[1], "w"), fdopen(from_child[0], "r")));
}

Child::~Child() {
  fclose(in_);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  fclose(out_);
}

absl::StatusOr<std::string> Child::ReadLine() {
  std::array<char, 512> line;
  if (fgets(line.data(), line.size(), out_) == nullptr) {
    return absl::UnavailableError("the process has ended");
  }
  std::string text = line.data();
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

absl::StatusOr<double> Child::Ask(const std::string& line) {
  if (fputs(absl::StrCat(line, "\n").c_str(), in_) < 0 || fflush(in_) != 0) {
    return absl::UnavailableError("the process has ended");
  }
  ASSIGN_OR_RETURN(const std::string answer, ReadLine());
  double value = 0.0;
  if (!absl::SimpleAtod(answer, &value)) {
    return absl::InternalError(absl::StrCat("unexpected answer: ", answer));
  }
  return value;
}

}  // namespace lockstep
