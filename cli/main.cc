// lockstep: the command line.
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/console.h"

int main(int argc, char** argv) {
  lockstep::Console console = lockstep::ProcessConsole(argv[0]);
  return static_cast<int>(lockstep::RunCommandLine(
      std::vector<std::string>(argv + 1, argv + argc), console));
}
