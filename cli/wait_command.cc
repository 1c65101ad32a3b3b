#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/job_report_text.h"
#include "common/bytes.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

struct WaitOptions {
  std::string job;
  std::string state;
  std::string timeout;
};

absl::StatusOr<v1::JobState> ParseState(const std::string& word) {
  const std::string upper = absl::AsciiStrToUpper(word);
  const auto* type = v1::JobState_descriptor();
  for (int i = 1; i < type->value_count(); ++i) {
    const auto state = static_cast<v1::JobState>(type->value(i)->number());
    if (StateWord(state) == upper) return state;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--for is \"", word,
      "\", want pending, starting, running, restarting, succeeded, failed or "
      "cancelled"));
}

// Stops `stop` after a time, unless destroyed before; says whether it did.
class Alarm {
 public:
  Alarm(absl::Duration after, StopToken& stop)
      : thread_([this, after, &stop] {
          if (off_.WaitFor(after)) return;
          rang_ = true;
          stop.Stop();
        }) {}
  ~Alarm() {
    off_.Stop();
    thread_.join();
  }
  bool rang() const { return rang_; }

 private:
  StopToken off_;
  std::atomic<bool> rang_ = false;
  std::thread thread_;
};

absl::StatusOr<ExitCode> Wait(const WaitOptions& options,
                              const Console& console, ClusterSession& session,
                              StopToken& stop) {
  ASSIGN_OR_RETURN(const v1::JobState wanted, ParseState(options.state));
  absl::Duration timeout = absl::InfiniteDuration();
  if (!options.timeout.empty()) {
    ASSIGN_OR_RETURN(timeout, ParseDuration(options.timeout));
  }
  Alarm alarm(timeout, stop);
  absl::StatusOr<v1::JobInfo> ended = session.client().GetJob(options.job);
  bool reached = ended.ok() && ended->state() == wanted;
  // What an ended job was before counts no more.
  if (ended.ok() && !reached && !IsEnded(ended->state())) {
    const std::string id = ended->id();
    ended = session.client().Watch(id, [&](const v1::JobUpdate& update) {
      reached = reached || (update.has_job() && update.job().state() == wanted);
      return !reached;
    });
  }
  if (reached) return ExitCode::kDone;
  if (alarm.rang()) {
    console.err << "lockstep: job " << options.job << " was not "
                << StateWord(wanted) << " within " << options.timeout << "\n";
    return ExitCode::kTimedOut;
  }
  if (!ended.ok()) return ended.status();
  console.err << "lockstep: job/" << ended->id() << " ended "
              << StateWord(ended->state())
              << (ended->reason().empty() ? "" : ": " + ended->reason())
              << "\n";
  return ended->state() == v1::JOB_STATE_CANCELLED ? ExitCode::kCancelled
                                                   : ExitCode::kFailed;
}

}  // namespace

void AddWaitCommand(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<WaitOptions>();
  CLI::App* verb =
      app.add_subcommand("wait", "wait until a job reaches a state");
  verb->add_option("job", options->job, "id, unique prefix or name")
      ->required()
      ->type_name("JOB");
  verb->add_option("--for", options->state,
                   "the state to wait for, succeeded say")
      ->required()
      ->type_name("STATE");
  verb->add_option("--timeout", options->timeout,
                   "longest time to wait, 60s say (default: for ever)")
      ->type_name("TIME");
  OnChosen(*verb, context, [&context, options] {
    return WithCluster(context, ClusterSession::LocalStart::kIfNeeded,
                       [&](ClusterSession& session, StopToken& stop) {
                         return Wait(*options, context.console, session, stop);
                       });
  });
}

}  // namespace lockstep
