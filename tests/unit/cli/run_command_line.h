// Runs whole commands in this process, with their output caught.
#ifndef LOCKSTEP_TESTS_UNIT_CLI_RUN_COMMAND_LINE_H_
#define LOCKSTEP_TESTS_UNIT_CLI_RUN_COMMAND_LINE_H_

#include <map>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/console.h"

namespace lockstep::testing {

struct CommandResult {
  int code = -1;
  std::string out;
  std::string err;
};

inline std::ostream& operator<<(std::ostream& os, const CommandResult& result) {
  return os << "exit code " << result.code << "\nstdout:\n"
            << result.out << "\nstderr:\n"
            << result.err;
}

// `variables` are all that the command sees of the environment.
inline CommandResult RunCommand(
    const std::vector<std::string>& arguments,
    const std::map<std::string, std::string>& variables = {}) {
  std::ostringstream out;
  std::ostringstream err;
  Console console = {.out = out, .err = err};
  console.program = "./lockstep";
  console.program_folder = "/nowhere";
  console.variable =
      [&variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  const ExitCode code = RunCommandLine(arguments, console);
  return {static_cast<int>(code), out.str(), err.str()};
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_CLI_RUN_COMMAND_LINE_H_
