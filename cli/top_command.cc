#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/job_report_text.h"
#include "cli/number_text.h"
#include "common/bytes.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

struct TopOptions {
  std::string interval = "2s";
  bool once = false;
};

// One picture of the cluster: workers, and jobs that have not ended.
absl::StatusOr<std::string> Picture(CoordinatorClient& client) {
  ASSIGN_OR_RETURN(const v1::ListWorkersResponse workers, client.ListWorkers());
  ASSIGN_OR_RETURN(const v1::ListJobsResponse jobs, client.ListJobs(true));
  std::vector<std::vector<std::string>> worker_rows;
  int64_t devices = 0;
  int64_t free = 0;
  for (const v1::WorkerInfo& worker : workers.workers()) {
    devices += worker.devices();
    free += worker.devices_free();
    worker_rows.push_back(
        {worker.name(), worker.state(),
         absl::StrCat(worker.devices() - worker.devices_free(), "/",
                      worker.devices()),
         FormatBytes(worker.memory_per_device_bytes())});
  }
  std::vector<std::vector<std::string>> job_rows;
  const absl::Time now = absl::Now();
  for (const v1::JobInfo& job : jobs.jobs()) {
    if (IsEnded(job.state())) continue;
    const absl::StatusOr<v1::JobReport> report = client.GetReport(job.id());
    // Deleted since it was listed.
    if (absl::IsNotFound(report.status())) continue;
    RETURN_IF_ERROR(report.status());
    job_rows.push_back({job.id(), StateWord(job.state()),
                        absl::StrCat(job.step(), "/", job.steps()),
                        report->metrics().has_train_loss()
                            ? LossText(report->metrics().train_loss())
                            : "-",
                        report->speed().has_tokens_per_second()
                            ? ShortCount(report->speed().tokens_per_second())
                            : "-",
                        absl::StrCat(job.devices()), Age(job.submitted(), now),
                        job.reason()});
  }
  std::ostringstream out;
  out << client.address() << ": " << workers.workers_size() << " workers, "
      << devices - free << " of " << devices << " devices busy\n\n";
  PrintTable({"WORKER", "STATE", "BUSY", "MEMORY"}, worker_rows, out);
  out << "\n";
  PrintTable(
      {"JOB", "STATE", "STEP", "LOSS", "TOKENS/S", "DEVICES", "AGE", "REASON"},
      job_rows, out);
  return out.str();
}

absl::StatusOr<ExitCode> Top(const TopOptions& options, Console& console,
                             ClusterSession& session, StopToken& stop) {
  ASSIGN_OR_RETURN(const absl::Duration interval,
                   ParseDuration(options.interval));
  if (interval <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("--interval is 0, want more");
  }
  while (true) {
    const auto picture = Picture(session.client());
    // Ctrl-C is how one leaves.
    if (stop.stopped()) return ExitCode::kDone;
    RETURN_IF_ERROR(picture.status());
    if (!console.out_is_terminal || options.once) {
      console.out << *picture;
      return ExitCode::kDone;
    }
    // From the top left, over what was there.
    console.out << "\033[H\033[2J" << *picture << std::flush;
    if (stop.WaitFor(interval)) return ExitCode::kDone;
  }
}

}  // namespace

void AddTopCommand(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<TopOptions>();
  CLI::App* verb = app.add_subcommand("top", "watch workers and jobs");
  verb->add_option("--interval", options->interval, "time between pictures")
      ->type_name("TIME");
  verb->add_flag("--once", options->once, "print one picture and end");
  OnChosen(*verb, context, [&context, options] {
    return WithCluster(context, ClusterSession::LocalStart::kIfNeeded,
                       [&](ClusterSession& session, StopToken& stop) {
                         return Top(*options, context.console, session, stop);
                       });
  });
}

}  // namespace lockstep
