// What all commands share: how they are added to the parser, how they reach the
// cluster, how they fail.
#ifndef LOCKSTEP_CLI_COMMAND_H_
#define LOCKSTEP_CLI_COMMAND_H_

#include <functional>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/cluster_session.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/output_format.h"
#include "cli/stop_token.h"

namespace lockstep {

// Lives as long as the command line is worked on.
struct CommandContext {
  Console& console;
  // Flags of the root; the parser fills them in.
  ClusterFlags flags;
  // Set by the chosen command once everything is parsed.
  std::function<ExitCode()> chosen;
};

// Adds a verb. Its function (AddXCommand) declares options that live in a
// shared struct, and calls OnChosen with what the verb does.
void OnChosen(CLI::App& verb, CommandContext& context,
              std::function<ExitCode()> action);

// Prints the error for a person and says how to end.
ExitCode Fail(const Console& console, const absl::Status& status);
// The same for either.
ExitCode Finish(const Console& console, const absl::StatusOr<ExitCode>& result);

// -o with the forms in `allowed`, of which the first is the default. The
// parser's value goes to `*word`; read it with ParseOutputFormat.
void AddOutputOption(CLI::App& verb, std::string* word,
                     const std::string& forms);

// Opens the cluster and works with it; once more if it was a local one whose
// owner ended meanwhile. Ctrl-C ends whatever it does, with exit code 4.
ExitCode WithCluster(
    CommandContext& context, ClusterSession::LocalStart local_start,
    const std::function<absl::StatusOr<ExitCode>(ClusterSession&, StopToken&)>&
        work);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_COMMAND_H_
