#include "cli/command.h"

#include "absl/strings/str_cat.h"
#include "cli/interrupt_handler.h"
#include "common/status_macros.h"

namespace lockstep {

void OnChosen(CLI::App& verb, CommandContext& context,
              std::function<ExitCode()> action) {
  verb.callback(
      [&context, action = std::move(action)] { context.chosen = action; });
}

ExitCode Fail(const Console& console, const absl::Status& status) {
  console.err << "lockstep: "
              << (status.message().empty() ? status.ToString()
                                           : std::string(status.message()))
              << "\n"
              << std::flush;
  return ExitCodeOf(status);
}

ExitCode Finish(const Console& console,
                const absl::StatusOr<ExitCode>& result) {
  return result.ok() ? *result : Fail(console, result.status());
}

void AddOutputOption(CLI::App& verb, std::string* word,
                     const std::string& forms) {
  verb.add_option("-o,--output", *word, "form of the output: " + forms)
      ->type_name("FORM");
}

ExitCode WithCluster(
    CommandContext& context, ClusterSession::LocalStart local_start,
    const std::function<absl::StatusOr<ExitCode>(ClusterSession&, StopToken&)>&
        work) {
  StopToken stop;
  InterruptHandler interrupts([&stop](int) {
    stop.Stop();
    return absl::InfiniteDuration();
  });
  while (true) {
    const auto session = ClusterSession::Open(
        {.flags = context.flags, .local_start = local_start, .stop = &stop},
        context.console);
    if (!session.ok()) return Fail(context.console, session.status());
    const absl::StatusOr<ExitCode> result = work(**session, stop);
    const bool again =
        result.status().code() == absl::StatusCode::kUnavailable &&
        (*session)->CanBeReopened() && !stop.stopped();
    if (!again) return Finish(context.console, result);
  }
}

}  // namespace lockstep
