#include "cli/commands.h"
#include "common/version.h"

namespace lockstep {

void AddVersionCommand(CLI::App& app, CommandContext& context) {
  CLI::App* verb =
      app.add_subcommand("version", "print this program's version");
  OnChosen(*verb, context, [&context] {
    context.console.out << "lockstep " << Version() << "\n";
    return ExitCode::kDone;
  });
}

}  // namespace lockstep
