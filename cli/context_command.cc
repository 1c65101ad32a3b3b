#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/contexts.h"
#include "common/address.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// The context that stands for no coordinator.
constexpr char kLocal[] = "local";

// Makes `name` current; with --coordinator it is made or changed first.
absl::StatusOr<ExitCode> Use(const std::string& name, CommandContext& context) {
  ASSIGN_OR_RETURN(Contexts contexts, Contexts::Load(context.console));
  std::string address = context.flags.coordinator;
  // HOST:PORT is its own name.
  if (address.empty() && absl::StrContains(name, ":") &&
      contexts.coordinators.count(name) == 0) {
    address = name;
  }
  if (!address.empty()) {
    if (name == kLocal) {
      return absl::InvalidArgumentError(
          "the context \"local\" has no coordinator; give another name");
    }
    ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
    contexts.coordinators[name] = parsed.ToString();
  }
  if (name != kLocal && contexts.coordinators.count(name) == 0) {
    std::vector<std::string> known = {kLocal};
    for (const auto& [other, unused] : contexts.coordinators) {
      known.push_back(other);
    }
    return absl::NotFoundError(
        absl::StrCat("there is no context \"", name, "\" (there is ",
                     absl::StrJoin(known, ", "), "); make it by `context use ",
                     name, " --coordinator HOST:PORT`"));
  }
  contexts.current = name == kLocal ? "" : name;
  RETURN_IF_ERROR(contexts.Save(context.console));
  context.console.err << "current context: " << name << "\n";
  return ExitCode::kDone;
}

absl::StatusOr<ExitCode> List(CommandContext& context) {
  ASSIGN_OR_RETURN(const Contexts contexts, Contexts::Load(context.console));
  std::vector<std::vector<std::string>> rows = {
      {contexts.current.empty() ? "*" : "", kLocal, "-"}};
  for (const auto& [name, address] : contexts.coordinators) {
    rows.push_back({contexts.current == name ? "*" : "", name, address});
  }
  PrintTable({"CURRENT", "NAME", "COORDINATOR"}, rows, context.console.out);
  return ExitCode::kDone;
}

}  // namespace

void AddContextCommand(CLI::App& app, CommandContext& context) {
  CLI::App* verb =
      app.add_subcommand("context", "choose the cluster that commands talk to");
  verb->require_subcommand(1);
  verb->fallthrough();
  const auto name = std::make_shared<std::string>();
  CLI::App* use = verb->add_subcommand(
      "use", "make a context current; with --coordinator, make it first");
  use->add_option("context", *name,
                  "its name, HOST:PORT, or `local` for the local cluster")
      ->required()
      ->type_name("CONTEXT");
  OnChosen(*use, context, [&context, name] {
    return Finish(context.console, Use(*name, context));
  });
  CLI::App* list = verb->add_subcommand("list", "list the contexts");
  OnChosen(*list, context,
           [&context] { return Finish(context.console, List(context)); });
}

}  // namespace lockstep
