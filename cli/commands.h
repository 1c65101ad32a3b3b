// The verbs of the command line; each function adds one to the parser.
#ifndef LOCKSTEP_CLI_COMMANDS_H_
#define LOCKSTEP_CLI_COMMANDS_H_

#include "CLI/CLI.hpp"
#include "cli/command.h"

namespace lockstep {

void AddRunCommand(CLI::App& app, CommandContext& context);
void AddSubmitCommand(CLI::App& app, CommandContext& context);
void AddGetCommand(CLI::App& app, CommandContext& context);
void AddDescribeCommand(CLI::App& app, CommandContext& context);
void AddLogsCommand(CLI::App& app, CommandContext& context);
void AddTopCommand(CLI::App& app, CommandContext& context);
void AddCancelCommand(CLI::App& app, CommandContext& context);
void AddDeleteCommand(CLI::App& app, CommandContext& context);
void AddWaitCommand(CLI::App& app, CommandContext& context);
void AddGenerateCommand(CLI::App& app, CommandContext& context);
void AddEvaluateCommand(CLI::App& app, CommandContext& context);
void AddExplainCommand(CLI::App& app, CommandContext& context);
void AddVersionCommand(CLI::App& app, CommandContext& context);
void AddCompletionCommand(CLI::App& app, CommandContext& context);
void AddContextCommand(CLI::App& app, CommandContext& context);
// Verbs that are known but whose work comes later: plan, export, drain ...
void AddUnbuiltCommands(CLI::App& app, CommandContext& context);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_COMMANDS_H_
