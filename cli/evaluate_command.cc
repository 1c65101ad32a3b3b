#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/action_job.h"
#include "cli/commands.h"
#include "cli/job_file.h"
#include "cli/number_text.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

struct EvaluateOptions {
  std::string job;
  std::vector<std::string> data;
  std::string format = "table";
};

bool AllEndIn(const v1::DataSource& source,
              const std::vector<std::string>& extensions) {
  return std::all_of(
      source.path().begin(), source.path().end(), [&](const std::string& path) {
        return std::any_of(extensions.begin(), extensions.end(),
                           [&](const std::string& extension) {
                             return absl::EndsWith(path, extension);
                           });
      });
}

// What `data` doesn't say itself is as in the training data.
void FollowTrainingData(const v1::DataSource& train, v1::DataSource& data) {
  if (!AllEndIn(data, {".txt", ".jsonl", ".csv", ".bin"})) {
    data.set_format(train.format());
  }
  if (!AllEndIn(data, {".txt", ".bin"})) {
    data.set_text(train.text());
    data.set_label(train.label());
  }
}

void PrintReport(const v1::EvaluationReport& report, Console& console) {
  std::vector<std::string> titles = {"STEP", "LOSS"};
  std::vector<std::string> cells = {absl::StrCat(report.step()),
                                    LossText(report.loss())};
  if (report.has_bits_per_byte()) {
    titles.push_back("BITS PER BYTE");
    cells.push_back(LossText(report.bits_per_byte()));
  }
  if (report.has_accuracy()) {
    titles.push_back("ACCURACY");
    cells.push_back(LossText(report.accuracy()));
  }
  titles.push_back("TARGETS");
  cells.push_back(absl::StrCat(report.targets()));
  PrintTable(titles, {cells}, console.out);
}

absl::StatusOr<ExitCode> Evaluate(const EvaluateOptions& options,
                                  CommandContext& context,
                                  ClusterSession& session, StopToken& stop) {
  ASSIGN_OR_RETURN(const OutputFormat format,
                   ParseOutputFormat(options.format,
                                     {OutputFormat::kTable, OutputFormat::kJson,
                                      OutputFormat::kYaml}));
  v1::Action action;
  v1::EvaluateAction& evaluate = *action.mutable_evaluate();
  for (std::string path : options.data) {
    // Of a remote cluster, paths start at its data root.
    if (session.is_local()) {
      std::error_code error;
      path = std::filesystem::absolute(path, error).lexically_normal().string();
    }
    evaluate.mutable_data()->add_path(path);
  }
  ASSIGN_OR_RETURN(const v1::JobInfo source,
                   session.client().GetJob(options.job));
  if (evaluate.has_data()) {
    FollowTrainingData(source.spec().data().train(), *evaluate.mutable_data());
    if (session.is_local()) {
      RETURN_IF_ERROR(CheckSourceInputs("--data", evaluate.data()));
    }
  } else if (!source.spec().data().has_validation()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.id(), " has no validation data; give --data FILE"));
  }
  std::optional<v1::EvaluationReport> report;
  ASSIGN_OR_RETURN(const ExitCode code,
                   RunAction(source.id(), std::move(action), context, session,
                             stop, [&report](const v1::ActionOutput& output) {
                               if (output.has_evaluation())
                                 report = output.evaluation();
                             }));
  if (code != ExitCode::kDone) return code;
  if (!report.has_value()) {
    return absl::InternalError("the job ended without a result");
  }
  if (format == OutputFormat::kTable) {
    PrintReport(*report, context.console);
  } else {
    PrintMessage(*report, format, context.console);
  }
  return code;
}

}  // namespace

void AddEvaluateCommand(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<EvaluateOptions>();
  CLI::App* verb = app.add_subcommand(
      "evaluate", "measure a job's model on its validation data or other");
  verb->add_option("job", options->job, "id, unique prefix or name")
      ->required()
      ->type_name("JOB");
  verb->add_option("--data", options->data,
                   "file, folder or glob (default: the job's validation data)")
      ->type_name("PATH")
      ->allow_extra_args(false);
  AddOutputOption(*verb, &options->format, "table, json or yaml");
  OnChosen(*verb, context, [&context, options] {
    return WithCluster(context, ClusterSession::LocalStart::kIfNeeded,
                       [&](ClusterSession& session, StopToken& stop) {
                         return Evaluate(*options, context, session, stop);
                       });
  });
}

}  // namespace lockstep
