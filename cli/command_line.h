// The whole command line of `lockstep`: parses the arguments and runs the verb.
#ifndef LOCKSTEP_CLI_COMMAND_LINE_H_
#define LOCKSTEP_CLI_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/exit_code.h"

namespace lockstep {

// `arguments` are those behind the program's name.
ExitCode RunCommandLine(const std::vector<std::string>& arguments,
                        Console& console);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_COMMAND_LINE_H_
