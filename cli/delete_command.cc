#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "common/status_macros.h"

namespace lockstep {

void AddDeleteCommand(CLI::App& app, CommandContext& context) {
  const auto jobs = std::make_shared<std::vector<std::string>>();
  CLI::App* verb =
      app.add_subcommand("delete", "delete ended jobs and their files");
  verb->add_option("job", *jobs, "id, unique prefix or name")
      ->required()
      ->type_name("JOB");
  OnChosen(*verb, context, [&context, jobs] {
    const auto work = [&](ClusterSession& session,
                          StopToken&) -> absl::StatusOr<ExitCode> {
      for (const std::string& job : *jobs) {
        ASSIGN_OR_RETURN(const v1::DeleteJobResponse deleted,
                         session.client().DeleteJob(job));
        session.MarkBegun();
        context.console.out << "job/" << deleted.id() << " deleted\n";
      }
      return ExitCode::kDone;
    };
    return WithCluster(context, ClusterSession::LocalStart::kIfNeeded, work);
  });
}

}  // namespace lockstep
