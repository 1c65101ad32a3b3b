#include "cli/command_line.h"

#include <algorithm>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "common/spec/nearest_word.h"

namespace lockstep {
namespace {

// The deepest verb that was given.
const CLI::App& ChosenVerb(const CLI::App& app) {
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) {
    chosen = chosen->get_subcommands().front();
  }
  return *chosen;
}

std::vector<std::string> VerbNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb :
       app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

// Long flags of the verb and of those above it.
std::vector<std::string> FlagNames(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::App* app = &verb; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  }
  return names;
}

// A sentence of what is wrong with the arguments, and the nearest right ones.
std::string UsageText(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = ChosenVerb(app);
  std::string text = error.what();
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) {
    text.pop_back();
  }
  const std::vector<std::string> extras = verb.remaining(true);
  const std::vector<std::string> rest =
      extras.empty() ? app.remaining(true) : extras;
  for (const std::string& extra : rest) {
    const bool is_flag = absl::StartsWith(extra, "-");
    const std::vector<std::string> known =
        is_flag ? FlagNames(verb) : VerbNames(verb);
    text =
        absl::StrCat(is_flag ? "unknown flag " : "unexpected argument ", extra);
    if (!known.empty()) {
      const std::string word =
          is_flag ? extra.substr(0, extra.find('=')) : extra;
      absl::StrAppend(&text, "; did you mean ", NearestWord(word, known), "?");
    }
    break;
  }
  std::string path;
  for (const CLI::App* at = &verb; at->get_parent() != nullptr;
       at = at->get_parent()) {
    path = absl::StrCat(at->get_name(), " ", path);
  }
  return absl::StrCat(text, " (`lockstep ", path, "--help` says more)");
}

}  // namespace

ExitCode RunCommandLine(const std::vector<std::string>& arguments,
                        Console& console) {
  CommandContext context = {.console = console, .flags = {}, .chosen = nullptr};
  CLI::App app("Trains transformer models on a cluster of workers.",
               "lockstep");
  app.require_subcommand(1);
  app.fallthrough();
  app.option_defaults()->group("Cluster");
  app.add_option("--coordinator", context.flags.coordinator,
                 "HOST:PORT of the coordinator (default: "
                 "LOCKSTEP_COORDINATOR, else the current context)");
  app.add_option("--dir", context.flags.folder,
                 "folder of the local cluster (default: .lockstep)");
  app.option_defaults()->group("Options");
  AddRunCommand(app, context);
  AddSubmitCommand(app, context);
  AddGetCommand(app, context);
  AddDescribeCommand(app, context);
  AddLogsCommand(app, context);
  AddTopCommand(app, context);
  AddCancelCommand(app, context);
  AddDeleteCommand(app, context);
  AddWaitCommand(app, context);
  AddGenerateCommand(app, context);
  AddEvaluateCommand(app, context);
  AddExplainCommand(app, context);
  AddVersionCommand(app, context);
  AddCompletionCommand(app, context);
  AddContextCommand(app, context);
  AddUnbuiltCommands(app, context);

  // CLI11 takes them from the last to the first.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    console.out << ChosenVerb(app).help();
    return ExitCode::kDone;
  } catch (const CLI::ParseError& error) {
    if (arguments.empty()) {
      console.err << app.help();
      return ExitCode::kRefused;
    }
    return Fail(console, absl::InvalidArgumentError(UsageText(app, error)));
  }
  const ExitCode code = context.chosen ? context.chosen() : ExitCode::kRefused;
  console.out << std::flush;
  if (!console.out && code == ExitCode::kDone) {
    return Fail(console, absl::InternalError("can't write to stdout"));
  }
  return code;
}

}  // namespace lockstep
