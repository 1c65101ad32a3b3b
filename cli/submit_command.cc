#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/interrupt_handler.h"
#include "cli/job_file.h"
#include "cli/job_report_text.h"
#include "cli/progress_view.h"
#include "common/spec/job_spec.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

struct SubmitOptions {
  std::string job_file;
  std::vector<std::string> settings;
  std::string resume;
  bool detach = false;
  std::string format = "table";
};

// Shows the submitted job until its end; Ctrl-C leaves it to itself.
absl::StatusOr<ExitCode> Follow(const std::string& id, OutputFormat format,
                                CommandContext& context,
                                ClusterSession& session, StopToken& stop) {
  Console& console = context.console;
  ProgressView view(console, ProgressView::Detail::kAll);
  const auto job =
      session.client().Watch(id, [&view](const v1::JobUpdate& update) {
        view.Show(update, absl::Now());
        return true;
      });
  view.Clear();
  if (stop.stopped()) {
    console.err << "detached; job/" << id << " goes on. Come back by:\n  "
                << CommandText(console, context.flags,
                               absl::StrCat("logs ", id, " -f"))
                << "\n  "
                << CommandText(console, context.flags,
                               absl::StrCat("wait ", id, " --for=succeeded"))
                << "\n";
    return ExitCode::kDone;
  }
  RETURN_IF_ERROR(job.status());
  ASSIGN_OR_RETURN(const v1::JobReport report, session.client().GetReport(id));
  console.err << ReportText(report);
  if (format == OutputFormat::kTable) {
    console.err << NextCommands(console, context.flags, *job, report);
  }
  if (format == OutputFormat::kJson || format == OutputFormat::kYaml) {
    PrintMessage(report, format, console);
  }
  return ExitCodeOf(job->state());
}

absl::StatusOr<ExitCode> Submit(const SubmitOptions& options,
                                CommandContext& context,
                                ClusterSession& session, StopToken& stop) {
  ASSIGN_OR_RETURN(
      const OutputFormat format,
      ParseOutputFormat(options.format,
                        {OutputFormat::kTable, OutputFormat::kName,
                         OutputFormat::kJson, OutputFormat::kYaml}));
  v1::SubmitRequest request;
  ASSIGN_OR_RETURN(*request.mutable_spec(),
                   ReadJobFile(options.job_file, options.settings));
  RETURN_IF_ERROR(ValidateJobSpec(request.spec()));
  request.set_resume_from(options.resume);
  ASSIGN_OR_RETURN(const v1::SubmitResponse submitted,
                   session.client().Submit(std::move(request)));
  Console& console = context.console;
  for (const std::string& warning : submitted.warnings()) {
    console.err << "warning: " << warning << "\n";
  }
  const std::string& id = submitted.job_id();
  if (format == OutputFormat::kName) {
    console.out << "job/" << id << "\n" << std::flush;
  } else if (options.detach && format != OutputFormat::kTable) {
    PrintMessage(submitted, format, console);
  } else {
    console.err << "job/" << id << " submitted\n" << std::flush;
  }
  if (options.detach) return ExitCode::kDone;
  return Follow(id, format, context, session, stop);
}

}  // namespace

void AddSubmitCommand(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<SubmitOptions>();
  CLI::App* verb =
      app.add_subcommand("submit", "hand a job to a running cluster");
  verb->add_option("job", options->job_file, "the job file")
      ->required()
      ->type_name("JOB.yaml");
  verb->add_flag("--detach", options->detach, "don't follow the job");
  verb->add_option("--set", options->settings,
                   "change a key of the job, train.steps=50 say; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb->add_option("--resume", options->resume,
                   "start from the newest checkpoint of this job")
      ->type_name("JOB");
  AddOutputOption(*verb, &options->format, "table, name, json or yaml");
  OnChosen(*verb, context, [&context, options] {
    return WithCluster(context, ClusterSession::LocalStart::kNever,
                       [&](ClusterSession& session, StopToken& stop) {
                         return Submit(*options, context, session, stop);
                       });
  });
}

}  // namespace lockstep
