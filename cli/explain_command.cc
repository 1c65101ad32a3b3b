#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/field_docs.h"

namespace lockstep {

void AddExplainCommand(CLI::App& app, CommandContext& context) {
  const auto field = std::make_shared<std::string>("jobspec");
  CLI::App* verb =
      app.add_subcommand("explain", "document a key of the job file");
  verb->add_option("field", *field,
                   "path of the key, jobspec.train say (default: jobspec)")
      ->type_name("FIELD");
  OnChosen(*verb, context, [&context, field] {
    const auto text = FieldDocs().Explain(*field);
    if (!text.ok()) return Fail(context.console, text.status());
    context.console.out << *text;
    return ExitCode::kDone;
  });
}

}  // namespace lockstep
