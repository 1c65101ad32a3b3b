#include "tests/testing/sandbox.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/log.h"

namespace lockstep {
namespace testing {

nlohmann::json CommandResult::Json() const {
  return nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
}

std::vector<nlohmann::json> CommandResult::JsonLines() const {
  std::vector<nlohmann::json> lines;
  const std::vector<std::string> texts =
      absl::StrSplit(out, '\n', absl::SkipEmpty());
  for (const std::string& line : texts) {
    lines.push_back(
        nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false));
  }
  return lines;
}

std::ostream& operator<<(std::ostream& os, const CommandResult& result) {
  return os << "exit code " << result.code << "\nstdout:\n"
            << result.out << "\nstderr:\n"
            << result.err;
}

Sandbox::Sandbox() : marker_(std::filesystem::path(dir_.path()).filename()) {
  environment_[kMarkerVariable] = marker_;
  // The user's own settings must not reach the tests.
  environment_["HOME"] = dir_.path();
  environment_["XDG_CONFIG_HOME"] = dir_.File("config");
  environment_["LOCKSTEP_COORDINATOR"] = "";
}

Sandbox::~Sandbox() {
  for (const MarkedProcess& process : FindMarked(marker_)) {
    kill(process.pid, SIGKILL);
  }
  WaitForNothingLeft(absl::Seconds(10)).IgnoreError();
}

void Sandbox::SetEnvironment(const std::string& name,
                             const std::string& value) {
  environment_[name] = value;
}

std::unique_ptr<ChildProcess> Sandbox::Start(
    const std::string& program, std::vector<std::string> arguments) {
  ProcessOptions options;
  options.arguments = std::move(arguments);
  options.arguments.insert(options.arguments.begin(),
                           absl::StrCat(LOCKSTEP_BIN_DIR, "/", program));
  options.environment = environment_;
  options.directory = dir_.path();
  absl::StatusOr<std::unique_ptr<ChildProcess>> child =
      ChildProcess::Start(options);
  CHECK(child.ok()) << child.status();
  return *std::move(child);
}

CommandResult Sandbox::Lockstep(std::vector<std::string> arguments,
                                absl::Duration timeout) {
  const std::unique_ptr<ChildProcess> child =
      Start("lockstep", std::move(arguments));
  return Finish(*child, timeout);
}

CommandResult Sandbox::Finish(ChildProcess& child, absl::Duration timeout) {
  CommandResult result;
  const absl::StatusOr<ExitStatus> exit = child.WaitForExit(timeout);
  if (exit.ok()) {
    result.code = exit->code.has_value() ? *exit->code : 128 + *exit->signal;
  } else {
    child.SignalGroup(SIGKILL);
  }
  result.out = child.Output(Stream::kStdout);
  result.err = child.Output(Stream::kStderr);
  return result;
}

std::vector<MarkedProcess> Sandbox::Running(const std::string& program) const {
  return FindMarked(marker_, program);
}

absl::Status Sandbox::WaitForNothingLeft(absl::Duration timeout) const {
  return WaitForNoneMarked(marker_, timeout);
}

}  // namespace testing
}  // namespace lockstep
