#include "cli/action_job.h"

#include "absl/strings/str_cat.h"
#include "cli/coordinator_client.h"
#include "cli/job_report_text.h"
#include "cli/progress_view.h"
#include "common/spec/job_spec.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// The interrupted client answers nothing any more; a new one has the last word.
void CancelAfterInterrupt(const std::string& address, const std::string& id) {
  const auto client = CoordinatorClient::Connect({.address = address});
  if (client.ok()) (void)(*client)->CancelJob(id, "by Ctrl-C");
}

}  // namespace

absl::StatusOr<ExitCode> RunAction(
    const std::string& source_job, v1::Action action, CommandContext& context,
    ClusterSession& session, StopToken& stop,
    const std::function<void(const v1::ActionOutput&)>& sink) {
  CoordinatorClient& client = session.client();
  ASSIGN_OR_RETURN(const v1::JobInfo source, client.GetJob(source_job));
  v1::SubmitRequest request;
  *request.mutable_spec() = source.spec();
  action.set_source_job(source.id());
  *request.mutable_spec()->mutable_action() = std::move(action);
  request.set_refuse_if_pending(session.is_local());
  RETURN_IF_ERROR(ValidateJobSpec(request.spec()));
  RETURN_IF_ERROR(session.StartWorkersFor(source));
  session.MarkBegun();
  ASSIGN_OR_RETURN(const v1::SubmitResponse submitted,
                   client.Submit(std::move(request)));
  ProgressView view(context.console, ProgressView::Detail::kBar);
  const auto job =
      client.Watch(submitted.job_id(), [&](const v1::JobUpdate& update) {
        if (update.has_output()) {
          view.Clear();
          sink(update.output());
        } else {
          view.Show(update, absl::Now());
        }
        return true;
      });
  view.Clear();
  if (stop.stopped()) {
    CancelAfterInterrupt(client.address(), submitted.job_id());
    return ExitCode::kCancelled;
  }
  RETURN_IF_ERROR(job.status());
  if (job->state() != v1::JOB_STATE_SUCCEEDED) {
    context.console.err << "lockstep: job/" << job->id() << " ended "
                        << StateWord(job->state())
                        << (job->reason().empty() ? "" : ": " + job->reason())
                        << "\n";
  }
  return ExitCodeOf(job->state());
}

}  // namespace lockstep
