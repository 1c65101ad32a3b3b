#include "cli/job_report_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/job_progress.h"
#include "cli/number_text.h"
#include "common/bytes.h"
#include "common/spec/spec_printer.h"

namespace lockstep {
namespace {

void AppendLine(const std::string& title, const std::string& text,
                std::string& out) {
  if (!text.empty()) absl::StrAppendFormat(&out, "  %-14s %s\n", title, text);
}

std::string LossesText(const v1::JobReport::Metrics& metrics) {
  std::string text;
  if (metrics.has_train_loss()) {
    absl::StrAppend(&text, LossText(metrics.train_loss()), " in training");
  }
  if (metrics.has_validation_loss()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    LossText(metrics.validation_loss()), " in validation");
  }
  return text;
}

std::string SpeedText(const v1::JobReport::Speed& speed) {
  if (!speed.has_tokens_per_second()) return "";
  std::string text = absl::StrCat(
      GroupedCount(static_cast<int64_t>(speed.tokens_per_second())),
      " tokens/s");
  if (speed.has_step_seconds()) {
    absl::StrAppendFormat(&text, ", %.3g s a step", speed.step_seconds());
  }
  if (speed.has_model_flops_utilization()) {
    absl::StrAppendFormat(&text, ", %.0f %% of peak FLOP/s",
                          100.0 * speed.model_flops_utilization());
  }
  return text;
}

std::string MemoryText(const v1::JobReport& report) {
  const v1::MemoryReport* fullest = nullptr;
  for (const v1::MemoryReport& memory : report.memory()) {
    if (fullest == nullptr || memory.peak_bytes() > fullest->peak_bytes()) {
      fullest = &memory;
    }
  }
  if (fullest == nullptr) return "";
  std::string text = FormatBytes(fullest->peak_bytes());
  if (fullest->process_peak_bytes() > 0) {
    absl::StrAppend(&text, ", the whole process ",
                    FormatBytes(fullest->process_peak_bytes()));
  }
  if (report.memory_size() > 1) {
    absl::StrAppend(&text, " (rank ", fullest->rank(), ", the fullest of ",
                    report.memory_size(), ")");
  }
  return text;
}

std::string AttemptText(const v1::JobReport::Attempt& attempt) {
  std::string text = absl::StrCat(
      "generation ", attempt.generation(), ": ",
      attempt.outcome().empty() ? "still runs" : attempt.outcome());
  if (!attempt.cause().empty()) absl::StrAppend(&text, ", ", attempt.cause());
  if (attempt.has_first_rank()) {
    absl::StrAppend(&text, ", first rank ", attempt.first_rank());
  }
  if (!attempt.worker().empty()) {
    absl::StrAppend(&text, " on ", attempt.worker());
  }
  if (!attempt.message().empty()) {
    absl::StrAppend(&text, ": ", attempt.message());
  }
  return text;
}

}  // namespace

std::string StateWord(v1::JobState state) {
  const auto* value = v1::JobState_descriptor()->FindValueByNumber(state);
  return value == nullptr ? absl::StrCat(state) : EnumWord(*value);
}

std::string ReportText(const v1::JobReport& report) {
  const v1::JobReport::Job& job = report.job();
  std::string out = absl::StrCat(job.id(), ": ", job.state());
  const v1::JobReport::Progress& progress = report.progress();
  if (progress.step() > 0) {
    absl::StrAppend(&out, " after ", progress.step());
    if (progress.steps() > 0) absl::StrAppend(&out, " of ", progress.steps());
    absl::StrAppend(&out, progress.steps() == 1 ? " step" : " steps");
  }
  if (!job.reason().empty()) absl::StrAppend(&out, ": ", job.reason());
  absl::StrAppend(&out, "\n");
  const v1::JobReport::Metrics& metrics = report.metrics();
  AppendLine("loss", LossesText(metrics), out);
  if (metrics.has_validation_bits_per_byte()) {
    AppendLine("bits per byte", LossText(metrics.validation_bits_per_byte()),
               out);
  }
  if (metrics.has_validation_accuracy()) {
    AppendLine("accuracy", LossText(metrics.validation_accuracy()), out);
  }
  if (report.has_layout()) {
    AppendLine("layout", LayoutText(report.layout()), out);
  }
  AppendLine("speed", SpeedText(report.speed()), out);
  AppendLine("peak memory", MemoryText(report), out);
  if (report.has_checkpoint()) {
    AppendLine("checkpoint", report.checkpoint().path(), out);
  }
  // One attempt that ended well has nothing to add.
  if (report.attempts_size() > 1 ||
      (report.attempts_size() == 1 && !report.attempts(0).cause().empty())) {
    for (const v1::JobReport::Attempt& attempt : report.attempts()) {
      AppendLine("attempt", AttemptText(attempt), out);
    }
  }
  return out;
}

std::string CommandText(const Console& console, const ClusterFlags& flags,
                        const std::string& verb_and_arguments) {
  std::string text =
      absl::StrCat(ShellWord(console.program), " ", verb_and_arguments);
  if (!flags.coordinator.empty()) {
    absl::StrAppend(&text, " --coordinator ", ShellWord(flags.coordinator));
  }
  if (flags.folder.has_value()) {
    absl::StrAppend(&text, " --dir ", ShellWord(*flags.folder));
  }
  return text;
}

std::string NextCommands(const Console& console, const ClusterFlags& flags,
                         const v1::JobInfo& job, const v1::JobReport& report) {
  const std::string id = ShellWord(job.id());
  std::vector<std::string> commands;
  if (report.has_checkpoint() && job.spec().task() != v1::TASK_CLASSIFICATION &&
      job.spec().data().train().format() != v1::DATA_FORMAT_TOKENS) {
    commands.push_back(absl::StrCat("generate ", id, " --prompt 'In the'"));
  }
  if (report.has_checkpoint() && job.spec().data().has_validation()) {
    commands.push_back(absl::StrCat("evaluate ", id));
  }
  if (job.state() == v1::JOB_STATE_FAILED && report.attempts_size() > 0) {
    const v1::JobReport::Attempt& last =
        report.attempts(report.attempts_size() - 1);
    commands.push_back(
        last.has_first_rank()
            ? absl::StrCat("logs ", id, " --rank ", last.first_rank())
            : absl::StrCat("logs ", id));
  }
  if (report.progress().step() > 0) {
    commands.push_back(absl::StrCat("get steps ", id));
  }
  commands.push_back(absl::StrCat("describe job ", id));
  std::string out = "next:\n";
  for (const std::string& command : commands) {
    absl::StrAppend(&out, "  ", CommandText(console, flags, command), "\n");
  }
  return out;
}

}  // namespace lockstep
