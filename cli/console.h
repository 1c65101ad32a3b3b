// Console: where the command line writes and what it knows of its surroundings.
// Injected, so that tests can run whole commands.
#ifndef LOCKSTEP_CLI_CONSOLE_H_
#define LOCKSTEP_CLI_CONSOLE_H_

#include <functional>
#include <optional>
#include <ostream>
#include <string>

namespace lockstep {

struct Console {
  // Results.
  std::ostream& out;
  // Everything meant for a person.
  std::ostream& err;
  // `out` and `err` are terminals.
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  // Characters of a line on the terminal, now.
  std::function<int()> width = [] { return 80; };
  // A variable of the environment.
  std::function<std::optional<std::string>(const std::string&)> variable =
      [](const std::string&) { return std::nullopt; };
  // How this program was called, for commands that are printed.
  std::string program = "lockstep";
  // Folder of the daemons' programs.
  std::string program_folder = {};
};

// The process's own: stdout, stderr, its environment and /proc/self/exe.
Console ProcessConsole(const char* argv0);

// `word` as a shell takes it: quoted only where needed.
std::string ShellWord(const std::string& word);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_CONSOLE_H_
