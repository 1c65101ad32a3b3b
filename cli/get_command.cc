#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/job_report_text.h"
#include "cli/number_text.h"
#include "common/bytes.h"
#include "common/spec/spec_printer.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

struct GetOptions {
  std::string job;
  bool all = false;
  int64_t after_step = 0;
  std::string format;
};

using Work = absl::StatusOr<RecordList> (*)(const GetOptions&,
                                            CoordinatorClient&);

std::string TimeText(const google::protobuf::Timestamp& stamp) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", ToTime(stamp),
                          absl::LocalTimeZone());
}

absl::StatusOr<RecordList> Jobs(const GetOptions& options,
                                CoordinatorClient& client) {
  v1::ListJobsResponse jobs;
  if (options.job.empty()) {
    ASSIGN_OR_RETURN(jobs, client.ListJobs(options.all));
  } else {
    ASSIGN_OR_RETURN(*jobs.add_jobs(), client.GetJob(options.job));
  }
  RecordList list;
  list.titles = {"ID", "NAME", "STATE", "STEP", "DEVICES", "AGE", "REASON"};
  list.wide_titles = {"SUBMITTED", "GENERATION", "ACTION"};
  const absl::Time now = absl::Now();
  for (const v1::JobInfo& job : jobs.jobs()) {
    const std::string steps = job.steps() > 0
                                  ? absl::StrCat(job.step(), "/", job.steps())
                                  : absl::StrCat(job.step());
    std::string action = "train";
    if (job.spec().action().has_generate()) action = "generate";
    if (job.spec().action().has_evaluate()) action = "evaluate";
    if (job.spec().action().has_export_()) action = "export";
    list.records.push_back(
        {.cells = {job.id(), job.name(), StateWord(job.state()), steps,
                   absl::StrCat(job.devices()), Age(job.submitted(), now),
                   job.reason()},
         .wide_cells = {TimeText(job.submitted()),
                        absl::StrCat(job.generation()), action},
         .name = absl::StrCat("job/", job.id()),
         .json = JsonOf(job, {"id", "name", "state", "reason", "step", "steps",
                              "devices"})});
  }
  return list;
}

absl::StatusOr<RecordList> Workers(const GetOptions&,
                                   CoordinatorClient& client) {
  ASSIGN_OR_RETURN(const v1::ListWorkersResponse workers, client.ListWorkers());
  RecordList list;
  list.titles = {"NAME", "STATE",  "DEVICES", "FREE",
                 "KIND", "MEMORY", "ADDRESS"};
  list.wide_titles = {"HEARTBEAT", "RANKS"};
  const absl::Time now = absl::Now();
  for (const v1::WorkerInfo& worker : workers.workers()) {
    list.records.push_back(
        {.cells = {worker.name(), worker.state(),
                   absl::StrCat(worker.devices()),
                   absl::StrCat(worker.devices_free()), worker.device_kind(),
                   FormatBytes(worker.memory_per_device_bytes()),
                   worker.address()},
         .wide_cells = {Age(worker.last_heartbeat(), now),
                        absl::StrJoin(worker.ranks(), ",")},
         .name = absl::StrCat("worker/", worker.name()),
         .json = JsonOf(worker, {"name", "state", "address", "devices"})});
  }
  return list;
}

absl::StatusOr<RecordList> Checkpoints(const GetOptions& options,
                                       CoordinatorClient& client) {
  ASSIGN_OR_RETURN(const v1::ListCheckpointsResponse checkpoints,
                   client.ListCheckpoints(options.job));
  RecordList list;
  list.titles = {"STEP", "GENERATION", "SIZE", "PATH"};
  list.wide_titles = {"COMMITTED"};
  for (const v1::CheckpointInfo& checkpoint : checkpoints.checkpoints()) {
    const std::string& path = checkpoint.path();
    list.records.push_back(
        {.cells = {absl::StrCat(checkpoint.step()),
                   absl::StrCat(checkpoint.generation()),
                   FormatBytes(checkpoint.bytes()), path},
         .wide_cells = {TimeText(checkpoint.committed())},
         .name = absl::StrCat("checkpoint/",
                              path.substr(path.find_last_of('/') + 1)),
         .json = JsonOf(checkpoint, {"path", "step", "generation", "bytes"})});
  }
  return list;
}

absl::StatusOr<RecordList> Events(const GetOptions& options,
                                  CoordinatorClient& client) {
  ASSIGN_OR_RETURN(const v1::ListEventsResponse events,
                   client.ListEvents(options.job));
  RecordList list;
  list.titles = {"TIME", "JOB", "GENERATION", "TYPE", "MESSAGE"};
  for (const v1::Event& event : events.events()) {
    list.records.push_back({.cells = {TimeText(event.time()), event.job(),
                                      absl::StrCat(event.generation()),
                                      event.type(), event.message()},
                            .wide_cells = {},
                            .name = "",
                            .json = JsonOf(event, {"time", "job", "generation",
                                                   "type", "message"})});
  }
  return list;
}

// Steps can be many: JSON lines go out as they come.
absl::StatusOr<ExitCode> PrintSteps(const GetOptions& options,
                                    OutputFormat format, Console& console,
                                    ClusterSession& session) {
  v1::GetStepsRequest request;
  request.set_job(options.job);
  request.set_after_step(options.after_step);
  RecordList list;
  list.titles = {"STEP",          "LOSS",   "GRAD NORM",
                 "LEARNING RATE", "TOKENS", "SECONDS"};
  const auto take = [&](const v1::StepReport& step) {
    if (format == OutputFormat::kJson) {
      session.MarkBegun();
      console.out << ToJson(step, JsonStyle::kLine) << "\n";
      return;
    }
    list.records.push_back(
        {.cells = {absl::StrCat(step.step()), LossText(step.loss()),
                   LossText(step.grad_norm()),
                   absl::StrFormat("%.3g", step.learning_rate()),
                   absl::StrCat(step.tokens()),
                   absl::StrFormat("%.3g", step.seconds())},
         .wide_cells = {},
         .name = "",
         .json = JsonOf(step)});
  };
  RETURN_IF_ERROR(session.client().GetSteps(request, take));
  if (format != OutputFormat::kJson) PrintRecords(list, format, console);
  return ExitCode::kDone;
}

// A kind of thing that can be listed.
CLI::App* AddKind(CLI::App& get, const std::string& name,
                  const std::string& help,
                  const std::shared_ptr<GetOptions>& options) {
  CLI::App* kind = get.add_subcommand(name, help);
  // kubectl's habit: `get job` for `get jobs`.
  kind->alias(name.substr(0, name.size() - 1));
  return kind;
}

void ListOnChosen(CLI::App& kind, CommandContext& context,
                  const std::shared_ptr<GetOptions>& options,
                  std::vector<OutputFormat> formats, Work work) {
  OnChosen(kind, context, [&context, options, formats, work] {
    const auto format = ParseOutputFormat(
        options->format.empty() ? "table" : options->format, formats);
    if (!format.ok()) return Fail(context.console, format.status());
    return WithCluster(
        context, ClusterSession::LocalStart::kIfNeeded,
        [&](ClusterSession& session, StopToken&) -> absl::StatusOr<ExitCode> {
          ASSIGN_OR_RETURN(const RecordList list,
                           work(*options, session.client()));
          PrintRecords(list, *format, context.console);
          return ExitCode::kDone;
        });
  });
}

}  // namespace

void AddGetCommand(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<GetOptions>();
  CLI::App* verb = app.add_subcommand("get", "list jobs, workers and so on");
  verb->require_subcommand(1);
  verb->fallthrough();
  const std::vector<OutputFormat> all = {
      OutputFormat::kTable, OutputFormat::kWide, OutputFormat::kJson,
      OutputFormat::kYaml, OutputFormat::kName};
  // Steps and events have no names.
  const std::vector<OutputFormat> nameless(all.begin(), all.end() - 1);
  AddOutputOption(*verb, &options->format, "table, wide, json, yaml or name");

  CLI::App* jobs = AddKind(*verb, "jobs", "jobs, newest first", options);
  jobs->add_option("job", options->job, "only this one")->type_name("JOB");
  jobs->add_flag("--all", options->all, "also generate and evaluate jobs");
  ListOnChosen(*jobs, context, options, all, Jobs);

  CLI::App* workers = AddKind(*verb, "workers", "worker daemons", options);
  ListOnChosen(*workers, context, options, all, Workers);

  CLI::App* checkpoints = AddKind(*verb, "checkpoints",
                                  "a job's checkpoints, newest first", options);
  checkpoints->add_option("job", options->job, "id, unique prefix or name")
      ->required()
      ->type_name("JOB");
  ListOnChosen(*checkpoints, context, options, all, Checkpoints);

  CLI::App* events = AddKind(*verb, "events", "what happened to jobs", options);
  events->add_option("job", options->job, "only of this one")->type_name("JOB");
  ListOnChosen(*events, context, options, nameless, Events);

  CLI::App* steps =
      AddKind(*verb, "steps", "a job's steps, as JSON lines", options);
  steps->add_option("job", options->job, "id, unique prefix or name")
      ->required()
      ->type_name("JOB");
  steps->add_option("--after", options->after_step, "only steps above this one")
      ->check(CLI::NonNegativeNumber);
  OnChosen(*steps, context, [&context, options, nameless] {
    const auto format = ParseOutputFormat(
        options->format.empty() ? "json" : options->format, nameless);
    if (!format.ok()) return Fail(context.console, format.status());
    return WithCluster(context, ClusterSession::LocalStart::kIfNeeded,
                       [&](ClusterSession& session, StopToken&) {
                         return PrintSteps(*options, *format, context.console,
                                           session);
                       });
  });
}

}  // namespace lockstep
