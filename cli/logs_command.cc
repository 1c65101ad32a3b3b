#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/job_report_text.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

struct LogsOptions {
  std::string job;
  bool follow = false;
  std::optional<int64_t> rank;
  int64_t tail = 0;
  int64_t generation = 0;
};

absl::StatusOr<ExitCode> PrintLogs(const LogsOptions& options,
                                   CommandContext& context,
                                   ClusterSession& session, StopToken& stop) {
  v1::GetLogsRequest request;
  request.set_job(options.job);
  request.set_follow(options.follow);
  request.set_tail(options.tail);
  request.set_generation(options.generation);
  if (options.rank.has_value()) request.set_rank(*options.rank);
  Console& console = context.console;
  const absl::Status status =
      session.client().GetLogs(request, [&](const v1::LogLine& line) {
        session.MarkBegun();
        if (!options.rank.has_value()) {
          console.out << "rank " << line.rank() << " | ";
        }
        console.out << line.line() << "\n";
        if (options.follow) console.out << std::flush;
      });
  if (options.follow && stop.stopped()) {
    console.err << "detached; the job goes on. Come back by:\n  "
                << CommandText(
                       console, context.flags,
                       absl::StrCat("logs ", ShellWord(options.job), " -f"))
                << "\n";
    return ExitCode::kDone;
  }
  RETURN_IF_ERROR(status);
  return ExitCode::kDone;
}

}  // namespace

void AddLogsCommand(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<LogsOptions>();
  CLI::App* verb =
      app.add_subcommand("logs", "print what a job's ranks logged");
  verb->add_option("job", options->job, "id, unique prefix or name")
      ->required()
      ->type_name("JOB");
  verb->add_flag("-f,--follow", options->follow, "go on until the job ends");
  verb->add_option("--rank", options->rank,
                   "only this rank, without its number")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--tail", options->tail, "only the last lines of each rank")
      ->check(CLI::PositiveNumber);
  verb->add_option("--generation", options->generation,
                   "an earlier attempt (default: the newest)")
      ->check(CLI::PositiveNumber);
  OnChosen(*verb, context, [&context, options] {
    return WithCluster(context, ClusterSession::LocalStart::kIfNeeded,
                       [&](ClusterSession& session, StopToken& stop) {
                         return PrintLogs(*options, context, session, stop);
                       });
  });
}

}  // namespace lockstep
