#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/commands.h"
#include "cli/job_report_text.h"
#include "cli/number_text.h"
#include "common/bytes.h"
#include "common/spec/spec_printer.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

struct DescribeOptions {
  std::string name;
  std::string format = "table";
};

absl::StatusOr<OutputFormat> FormatOfWord(const std::string& word) {
  return ParseOutputFormat(
      word, {OutputFormat::kTable, OutputFormat::kJson, OutputFormat::kYaml});
}

std::string EventLines(const v1::ListEventsResponse& events) {
  std::string out;
  for (const v1::Event& event : events.events()) {
    absl::StrAppend(&out, "  ",
                    absl::FormatTime("%H:%M:%S", ToTime(event.time()),
                                     absl::LocalTimeZone()),
                    "  ", event.type(), event.message().empty() ? "" : ": ",
                    event.message(), "\n");
  }
  return out;
}

absl::StatusOr<ExitCode> DescribeJob(const DescribeOptions& options,
                                     CommandContext& context,
                                     CoordinatorClient& client) {
  ASSIGN_OR_RETURN(const OutputFormat format, FormatOfWord(options.format));
  ASSIGN_OR_RETURN(const v1::JobReport report, client.GetReport(options.name));
  if (format != OutputFormat::kTable) {
    PrintMessage(report, format, context.console);
    return ExitCode::kDone;
  }
  const std::string& id = report.job().id();
  ASSIGN_OR_RETURN(const v1::JobInfo job, client.GetJob(id));
  ASSIGN_OR_RETURN(const v1::ListEventsResponse events, client.ListEvents(id));
  std::string spec;
  for (const auto line : absl::StrSplit(ToYaml(job.spec()), '\n')) {
    if (!line.empty()) absl::StrAppend(&spec, "  ", line, "\n");
  }
  context.console.out << ReportText(report) << "events:\n"
                      << EventLines(events) << "job:\n"
                      << spec;
  return ExitCode::kDone;
}

absl::StatusOr<ExitCode> DescribeWorker(const DescribeOptions& options,
                                        CommandContext& context,
                                        CoordinatorClient& client) {
  ASSIGN_OR_RETURN(const OutputFormat format, FormatOfWord(options.format));
  ASSIGN_OR_RETURN(const v1::ListWorkersResponse list, client.ListWorkers());
  const auto found = std::find_if(list.workers().begin(), list.workers().end(),
                                  [&](const v1::WorkerInfo& worker) {
                                    return worker.name() == options.name;
                                  });
  if (found == list.workers().end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no worker \"", options.name, "\""));
  }
  if (format != OutputFormat::kTable) {
    PrintMessage(*found, format, context.console);
    return ExitCode::kDone;
  }
  context.console.out
      << found->name() << ": " << found->state() << "\n  address    "
      << found->address() << "\n  devices    " << found->devices() << " "
      << found->device_kind() << ", " << found->devices_free()
      << " free\n  memory     " << FormatBytes(found->memory_per_device_bytes())
      << " a device\n  heartbeat  " << Age(found->last_heartbeat(), absl::Now())
      << " ago\n  ranks      "
      << (found->ranks().empty() ? "none" : absl::StrJoin(found->ranks(), ", "))
      << "\n";
  return ExitCode::kDone;
}

using Describe = absl::StatusOr<ExitCode> (*)(const DescribeOptions&,
                                              CommandContext&,
                                              CoordinatorClient&);

void AddKind(CLI::App& parent, CommandContext& context, const char* name,
             const char* help, const char* what, Describe describe,
             const std::shared_ptr<DescribeOptions>& options) {
  CLI::App* kind = parent.add_subcommand(name, help);
  kind->add_option("name", options->name, what)->required()->type_name("NAME");
  OnChosen(*kind, context, [&context, options, describe] {
    return WithCluster(context, ClusterSession::LocalStart::kIfNeeded,
                       [&](ClusterSession& session, StopToken&) {
                         return describe(*options, context, session.client());
                       });
  });
}

}  // namespace

void AddDescribeCommand(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<DescribeOptions>();
  CLI::App* verb =
      app.add_subcommand("describe", "tell all about one job or worker");
  verb->require_subcommand(1);
  verb->fallthrough();
  AddOutputOption(*verb, &options->format, "table, json or yaml");
  AddKind(*verb, context, "job", "a job's report, events and file",
          "id, unique prefix or name", DescribeJob, options);
  AddKind(*verb, context, "worker", "a worker's state and ranks", "its name",
          DescribeWorker, options);
}

}  // namespace lockstep
