// Verbs that the command line knows but doesn't do yet. A new verb takes its
// line out of here.
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"

namespace lockstep {

void AddUnbuiltCommands(CLI::App& app, CommandContext& context) {
  constexpr const char* kVerbs[] = {"plan",     "export", "drain", "cordon",
                                    "uncordon", "trace",  "data",  "token"};
  for (const char* name : kVerbs) {
    CLI::App* verb = app.add_subcommand(name, "not built yet");
    verb->group("Not built yet");
    verb->allow_extras();
    verb->fallthrough(false);
    OnChosen(*verb, context, [&context, name = std::string(name)] {
      return Fail(context.console, absl::UnimplementedError(absl::StrCat(
                                       "`", name, "` is not built yet")));
    });
  }
}

}  // namespace lockstep
