#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/job_report_text.h"
#include "common/status_macros.h"

namespace lockstep {

void AddCancelCommand(CLI::App& app, CommandContext& context) {
  const auto jobs = std::make_shared<std::vector<std::string>>();
  CLI::App* verb = app.add_subcommand("cancel", "cancel jobs");
  verb->add_option("job", *jobs, "id, unique prefix or name")
      ->required()
      ->type_name("JOB");
  OnChosen(*verb, context, [&context, jobs] {
    const auto work = [&](ClusterSession& session,
                          StopToken&) -> absl::StatusOr<ExitCode> {
      for (const std::string& job : *jobs) {
        ASSIGN_OR_RETURN(const v1::JobInfo info,
                         session.client().CancelJob(job, "by user"));
        session.MarkBegun();
        context.console.out << "job/" << info.id() << " "
                            << (IsEnded(info.state()) ? StateWord(info.state())
                                                      : "is being cancelled")
                            << "\n";
      }
      return ExitCode::kDone;
    };
    return WithCluster(context, ClusterSession::LocalStart::kIfNeeded, work);
  });
}

}  // namespace lockstep
