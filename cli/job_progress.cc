#include "cli/job_progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/job_report_text.h"
#include "cli/number_text.h"
#include "common/bytes.h"

namespace lockstep {
namespace {

constexpr size_t kPaceSteps = 20;
constexpr int kBarCells = 20;
constexpr char kTraining[] = "training";

std::string Bar(double fraction) {
  const int full =
      std::clamp(static_cast<int>(fraction * kBarCells), 0, kBarCells);
  std::string bar(full, '=');
  if (full < kBarCells) bar += '>';
  bar.resize(kBarCells, ' ');
  return absl::StrCat("[", bar, "]");
}

}  // namespace

void JobProgress::Add(const v1::JobUpdate& update) {
  switch (update.update_case()) {
    case v1::JobUpdate::kJob:
      job_ = update.job();
      if (job_.state() != v1::JOB_STATE_RUNNING) phase_.clear();
      break;
    case v1::JobUpdate::kStep:
      step_ = update.step();
      phase_.clear();
      pace_.push_back({step_.seconds(), step_.tokens()});
      if (pace_.size() > kPaceSteps) pace_.pop_front();
      break;
    case v1::JobUpdate::kProgress:
      progress_ = update.progress();
      phase_ = progress_.phase() == kTraining ? "" : progress_.phase();
      break;
    case v1::JobUpdate::kEvaluation:
    case v1::JobUpdate::kEvent:
    case v1::JobUpdate::kOutput:
    case v1::JobUpdate::kLayout:
    case v1::JobUpdate::UPDATE_NOT_SET:
      break;
  }
}

std::optional<double> JobProgress::StepFraction() const {
  if (step() <= 0 || steps() <= 0) return std::nullopt;
  return std::min(1.0,
                  static_cast<double>(step()) / static_cast<double>(steps()));
}

std::optional<double> JobProgress::PhaseFraction() const {
  if (phase_.empty() || !progress_.has_fraction()) return std::nullopt;
  return std::clamp(progress_.fraction(), 0.0, 1.0);
}

std::optional<absl::Duration> JobProgress::TimeLeft() const {
  if (steps() <= 0 || pace_.empty()) return std::nullopt;
  double seconds = 0.0;
  for (const Pace& pace : pace_) seconds += pace.seconds;
  const double left =
      static_cast<double>(std::max<int64_t>(0, steps() - step()));
  return absl::Seconds(seconds / static_cast<double>(pace_.size()) * left);
}

std::string JobProgress::StepText() const {
  std::string text = absl::StrCat("step ", step());
  if (steps() > 0) absl::StrAppend(&text, "/", steps());
  absl::StrAppend(&text, "  loss ", LossText(step_.loss()));
  double seconds = 0.0;
  double tokens = 0.0;
  for (const Pace& pace : pace_) {
    seconds += pace.seconds;
    tokens += static_cast<double>(pace.tokens);
  }
  if (seconds > 0.0) {
    absl::StrAppend(&text, "  ", ShortCount(tokens / seconds), " tokens/s");
  }
  if (progress_.memory_bytes() > 0) {
    absl::StrAppend(&text, "  ", FormatBytes(progress_.memory_bytes()));
  }
  if (const auto left = TimeLeft(); left.has_value() && step() < steps()) {
    absl::StrAppend(&text, "  eta ", ShortDuration(*left));
  }
  return text;
}

std::string JobProgress::BarLine(int width) const {
  std::string line;
  const auto fraction = phase_.empty() ? StepFraction() : PhaseFraction();
  if (fraction.has_value()) {
    absl::StrAppend(
        &line, Bar(*fraction),
        absl::StrFormat(" %3d%%  ", static_cast<int>(*fraction * 100.0)));
  }
  if (!phase_.empty()) {
    absl::StrAppend(&line, phase_);
    if (!progress_.detail().empty()) {
      absl::StrAppend(&line, " ", progress_.detail());
    }
    if (step() > 0) absl::StrAppend(&line, "  ", StepText());
  } else if (step() > 0) {
    absl::StrAppend(&line, StepText());
  } else {
    absl::StrAppend(&line, job_.name(), ": ", StateWord(job_.state()));
    if (!job_.reason().empty()) absl::StrAppend(&line, ", ", job_.reason());
  }
  if (width > 0 && line.size() > static_cast<size_t>(width)) {
    line.resize(width);
    // Not in the midst of a character.
    while (!line.empty() && (line.back() & 0x80) != 0) line.pop_back();
  }
  return line;
}

std::string EvaluationText(const v1::EvaluationReport& report) {
  std::string text = absl::StrCat("validation loss ", LossText(report.loss()));
  if (report.has_bits_per_byte()) {
    absl::StrAppend(&text, ", ", LossText(report.bits_per_byte()),
                    " bits per byte");
  }
  if (report.has_accuracy()) {
    absl::StrAppend(&text, ", accuracy ", LossText(report.accuracy()));
  }
  return text;
}

std::string LayoutText(const v1::Layout& layout) {
  std::string text = absl::StrCat("dp ", layout.dp());
  const std::pair<const char*, int64_t> axes[] = {{"fsdp", layout.fsdp()},
                                                  {"cp", layout.cp()},
                                                  {"tp", layout.tp()},
                                                  {"pp", layout.pp()}};
  for (const auto& [name, degree] : axes) {
    if (degree > 1) absl::StrAppend(&text, ", ", name, " ", degree);
  }
  if (layout.micro_batch() > 0) {
    absl::StrAppend(&text, ", micro-batch ", layout.micro_batch());
  }
  return text;
}

}  // namespace lockstep
