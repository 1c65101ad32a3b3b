#include "cli/progress_view.h"

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "cli/job_report_text.h"

namespace lockstep {
namespace {

constexpr absl::Duration kDrawInterval = absl::Milliseconds(100);
constexpr absl::Duration kPrintInterval = absl::Seconds(5);
constexpr char kEraseLine[] = "\r\033[K";
constexpr char kWarning[] = "warning";

}  // namespace

ProgressView::~ProgressView() { Clear(); }

void ProgressView::Clear() {
  if (!bar_is_there_) return;
  console_.err << kEraseLine << std::flush;
  bar_is_there_ = false;
}

void ProgressView::PrintLine(const std::string& line) {
  Clear();
  console_.err << line << "\n" << std::flush;
}

void ProgressView::Draw(absl::Time now) {
  if (!console_.err_is_terminal || now - drawn_ < kDrawInterval) return;
  drawn_ = now;
  bar_is_there_ = true;
  // A full last column would wrap the line.
  console_.err << kEraseLine << progress_.BarLine(console_.width() - 1)
               << std::flush;
}

void ProgressView::Show(const v1::JobUpdate& update, absl::Time now) {
  progress_.Add(update);
  const bool all = detail_ == Detail::kAll;
  switch (update.update_case()) {
    case v1::JobUpdate::kJob:
      // Of the bar-only kind, just a wait that is not over at once.
      if (all ||
          (update.job().state() == v1::JOB_STATE_PENDING && job_updates_ > 0)) {
        ShowJob(update.job());
      }
      ++job_updates_;
      break;
    case v1::JobUpdate::kStep:
      if (all) ShowStep(now);
      break;
    case v1::JobUpdate::kProgress:
      if (all) ShowPhase(now);
      break;
    case v1::JobUpdate::kEvaluation:
      if (all) {
        PrintLine(absl::StrCat("step ", update.evaluation().step(), ": ",
                               EvaluationText(update.evaluation())));
      }
      break;
    case v1::JobUpdate::kEvent:
      if (update.event().type() == kWarning) {
        PrintLine(absl::StrCat("warning: ", update.event().message()));
      }
      break;
    case v1::JobUpdate::kLayout:
      if (all) {
        PrintLine(absl::StrCat("layout: ", LayoutText(update.layout())));
      }
      break;
    case v1::JobUpdate::kOutput:
    case v1::JobUpdate::UPDATE_NOT_SET:
      break;
  }
  Draw(now);
}

void ProgressView::ShowJob(const v1::JobInfo& job) {
  std::string line = absl::StrCat(job.id(), ": ", StateWord(job.state()));
  if (!job.reason().empty()) absl::StrAppend(&line, ", ", job.reason());
  // How it ended is told by the report.
  if (IsEnded(job.state()) || line == job_line_printed_) return;
  job_line_printed_ = line;
  PrintLine(line);
}

void ProgressView::ShowStep(absl::Time now) {
  if (console_.err_is_terminal) return;
  const int tenths =
      static_cast<int>(progress_.StepFraction().value_or(0.0) * 10.0);
  // A restart goes back.
  if (tenths < tenths_printed_) tenths_printed_ = tenths;
  if (now - printed_ < kPrintInterval && tenths == tenths_printed_) return;
  printed_ = now;
  tenths_printed_ = tenths;
  phase_printed_.clear();
  PrintLine(progress_.StepText());
}

void ProgressView::ShowPhase(absl::Time now) {
  if (console_.err_is_terminal || progress_.phase().empty()) return;
  if (progress_.phase() == phase_printed_ && now - printed_ < kPrintInterval) {
    return;
  }
  // Between steps, short phases would double the lines.
  if (progress_.step() > 0 && now - printed_ < kPrintInterval) return;
  printed_ = now;
  phase_printed_ = progress_.phase();
  PrintLine(progress_.BarLine(0));
}

}  // namespace lockstep
