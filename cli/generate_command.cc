#include <memory>
#include <optional>
#include <string>

#include "cli/action_job.h"
#include "cli/commands.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

struct GenerateOptions {
  std::string job;
  std::string prompt;
  std::optional<int64_t> max_tokens;
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  uint64_t seed = 0;
};

absl::StatusOr<ExitCode> Generate(const GenerateOptions& options,
                                  CommandContext& context,
                                  ClusterSession& session, StopToken& stop) {
  v1::Action action;
  v1::GenerateAction& generate = *action.mutable_generate();
  generate.set_prompt(options.prompt);
  generate.set_seed(options.seed);
  if (options.max_tokens.has_value()) {
    generate.set_max_tokens(*options.max_tokens);
  }
  if (options.temperature.has_value()) {
    generate.set_temperature(*options.temperature);
  }
  if (options.top_k.has_value()) generate.set_top_k(*options.top_k);
  Console& console = context.console;
  bool begun = false;
  char last = '\n';
  const auto print = [&](const std::string& text) {
    console.out << text << std::flush;
    if (!text.empty()) last = text.back();
  };
  ASSIGN_OR_RETURN(const ExitCode code,
                   RunAction(options.job, std::move(action), context, session,
                             stop, [&](const v1::ActionOutput& output) {
                               // The prompt comes first, once there is
                               // something after it.
                               if (!begun) print(options.prompt);
                               begun = true;
                               print(output.data());
                             }));
  if (!begun && code == ExitCode::kDone) print(options.prompt);
  // A shell's prompt begins on a line of its own.
  if (console.out_is_terminal && last != '\n') console.out << "\n";
  return code;
}

}  // namespace

void AddGenerateCommand(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<GenerateOptions>();
  CLI::App* verb =
      app.add_subcommand("generate", "continue a text with a job's model");
  verb->add_option("job", options->job, "id, unique prefix or name")
      ->required()
      ->type_name("JOB");
  verb->add_option("--prompt", options->prompt, "text to continue");
  verb->add_option("--max-tokens", options->max_tokens,
                   "most tokens to add (default: 100)");
  verb->add_option("--temperature", options->temperature,
                   "0 takes the likeliest token (default: 0.8)");
  verb->add_option("--top-k", options->top_k,
                   "choose among the likeliest; 0 is all (default: 40)");
  verb->add_option("--seed", options->seed, "seed of the sampling");
  OnChosen(*verb, context, [&context, options] {
    return WithCluster(context, ClusterSession::LocalStart::kIfNeeded,
                       [&](ClusterSession& session, StopToken& stop) {
                         return Generate(*options, context, session, stop);
                       });
  });
}

}  // namespace lockstep
