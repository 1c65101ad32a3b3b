#include "worker/train/actions.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/spec/job_spec.h"
#include "common/status_macros.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/data/prepared_data.h"
#include "worker/train/checkpointing.h"
#include "worker/train/evaluator.h"
#include "worker/train/gang_data.h"
#include "worker/train/generator.h"
#include "worker/train/training_state.h"

namespace lockstep {
namespace {

// A trained model and what belongs to it.
struct LoadedModel {
  std::unique_ptr<CheckpointReader> reader;
  TrainingState state;
  // Null for models of token files.
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<std::string> labels;
};

absl::StatusOr<LoadedModel> LoadModel(const RankContext& context,
                                      const std::string& directory) {
  v1::Progress progress;
  progress.set_phase("loading");
  context.reporter.SetProgress(0, progress);
  LoadedModel model;
  ASSIGN_OR_RETURN(
      model.reader,
      CheckpointReader::Open(directory, CheckpointReader::Verify::kChecksums));
  const v1::CheckpointManifest& manifest = model.reader->manifest();
  model.labels.assign(manifest.labels().begin(), manifest.labels().end());
  ASSIGN_OR_RETURN(
      const ModelSpec spec,
      MakeModelSpec(manifest.spec(), manifest.spec().model().vocabulary(),
                    static_cast<int64_t>(model.labels.size())));
  ASSIGN_OR_RETURN(
      model.state,
      MakeTrainingState(context.device, spec, MakeTrainingSpec(manifest.spec()),
                        Purpose::kUse));
  RETURN_IF_ERROR(
      LoadCheckpoint(*model.reader, context.device.stream(), model.state));
  if (!model.reader->tokenizer_files().empty()) {
    ASSIGN_OR_RETURN(model.tokenizer,
                     LoadTokenizer(model.reader->tokenizer_files()));
  }
  return model;
}

absl::Status RunGenerate(const RankContext& context,
                         const v1::GenerateAction& action,
                         const LoadedModel& model) {
  if (model.state.model_spec.task != v1::TASK_LANGUAGE_MODEL) {
    return absl::InvalidArgumentError(
        "generate needs a language model; this job trained a classifier");
  }
  if (model.tokenizer == nullptr) {
    return absl::InvalidArgumentError(
        "generate needs a tokenizer; this job trained on token ids");
  }
  if (!context.speaks()) return absl::OkStatus();
  return Generate(context, model.state, *model.tokenizer, action,
                  model.state.training_spec.sequence_length,
                  [&](const std::string& bytes) {
                    v1::RankReport report;
                    report.mutable_output()->set_data(bytes);
                    context.reporter.Report(std::move(report));
                  });
}

absl::Status RunEvaluate(const RankContext& context,
                         const v1::RankAssignment& assignment, Store& store,
                         const LoadedModel& model) {
  const v1::EvaluateAction& action = assignment.spec().action().evaluate();
  std::unique_ptr<PreparedData> own;
  std::unique_ptr<Dataset> other;
  const Dataset* dataset = nullptr;
  if (action.has_data()) {
    if (model.tokenizer == nullptr) {
      return absl::InvalidArgumentError(
          "evaluate --data needs a tokenizer; this job trained on token ids");
    }
    ASSIGN_OR_RETURN(other, OpenEvaluationData(
                                DataOptionsOf(context, assignment),
                                action.data(), *model.tokenizer, model.labels));
    dataset = other.get();
  } else {
    ASSIGN_OR_RETURN(own, OpenGangData(context, assignment, store));
    dataset = own->validation();
    if (dataset == nullptr) {
      return absl::InvalidArgumentError(
          "the job has no validation data; name some with --data");
    }
  }
  ASSIGN_OR_RETURN(v1::EvaluationReport evaluation,
                   Evaluate(context, model.state, *dataset,
                            assignment.layout().micro_batch()));
  if (context.speaks()) {
    v1::RankReport report;
    *report.mutable_output()->mutable_evaluation() = std::move(evaluation);
    context.reporter.Report(std::move(report));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunAction(const RankContext& context,
                       const v1::RankAssignment& assignment, Store& store) {
  const v1::Action& action = assignment.spec().action();
  ASSIGN_OR_RETURN(const LoadedModel model,
                   LoadModel(context, action.checkpoint()));
  switch (action.kind_case()) {
    case v1::Action::kGenerate:
      return RunGenerate(context, action.generate(), model);
    case v1::Action::kEvaluate:
      return RunEvaluate(context, assignment, store, model);
    case v1::Action::kExport:
      return absl::UnimplementedError("export is not built yet");
    case v1::Action::KIND_NOT_SET:
      break;
  }
  return absl::InternalError("an action of no kind");
}

}  // namespace lockstep
