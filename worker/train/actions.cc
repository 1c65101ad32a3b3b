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

// The model that the checkpoint says it is of. What it says is hostile until it
// was checked as a job file is.
absl::StatusOr<ModelSpec> ModelSpecOf(const LoadedModel& model) {
  const v1::JobSpec& spec = model.reader->manifest().spec();
  absl::Status status = ValidateJobSpec(spec);
  if (status.ok()) {
    absl::StatusOr<ModelSpec> made = MakeModelSpec(
        spec,
        model.tokenizer == nullptr ? spec.model().vocabulary()
                                   : model.tokenizer->vocabulary(),
        static_cast<int64_t>(model.labels.size()));
    if (made.ok()) return made;
    status = made.status();
  }
  return absl::DataLossError(
      absl::StrCat(model.reader->directory(),
                   ": its job can't be: ", std::string(status.message())));
}

absl::StatusOr<LoadedModel> LoadModel(const RankContext& context,
                                      const std::string& directory) {
  const auto alive = [&] { context.reporter.SetPhase(0, "loading"); };
  alive();
  LoadedModel model;
  ASSIGN_OR_RETURN(model.reader, CheckpointReader::Open(directory, alive));
  const v1::CheckpointManifest& manifest = model.reader->manifest();
  model.labels.assign(manifest.labels().begin(), manifest.labels().end());
  if (!model.reader->tokenizer_files().empty()) {
    ASSIGN_OR_RETURN(model.tokenizer,
                     LoadTokenizer(model.reader->tokenizer_files()));
  }
  ASSIGN_OR_RETURN(const ModelSpec spec, ModelSpecOf(model));
  ASSIGN_OR_RETURN(
      model.state,
      MakeTrainingState(context, spec, MakeTrainingSpec(manifest.spec()),
                        Purpose::kUse));
  RETURN_IF_ERROR(LoadCheckpoint(context, *model.reader, model.state));
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
  return Generate(context, model.state, *model.tokenizer, action,
                  model.state.training_spec.sequence_length,
                  [&](const std::string& bytes) {
                    if (!context.speaks()) return;
                    v1::RankReport report;
                    report.mutable_output()->set_data(bytes);
                    context.reporter.Report(std::move(report));
                  });
}

// Whether the model has all of the data's ids and classes: the digest is but
// the checkpoint's own word.
absl::Status CheckFits(const PreparedData& data, const LoadedModel& model) {
  const int64_t vocabulary = model.state.model_spec.vocabulary;
  if (data.vocabulary() <= vocabulary && data.labels() == model.labels) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      model.reader->directory(), " is of a model of ", vocabulary, " ids and ",
      model.labels.size(), " labels, the data have ", data.vocabulary(),
      " ids and ", data.labels().size(), " labels, or others"));
}

absl::Status RunEvaluate(const RankContext& context,
                         const v1::RankAssignment& assignment, Store& store,
                         const LoadedModel& model) {
  const v1::EvaluateAction& action = assignment.spec().action().evaluate();
  std::unique_ptr<PreparedData> own;
  std::unique_ptr<Dataset> other;
  const Dataset* dataset = nullptr;
  if (action.has_data()) {
    DataOptions options = DataOptionsOf(context, assignment);
    // Bounds the ids of token files.
    options.spec.mutable_model()->set_vocabulary(
        model.state.model_spec.vocabulary);
    absl::StatusOr<std::unique_ptr<Dataset>> opened = OpenEvaluationData(
        options, action.data(), model.tokenizer.get(), model.labels);
    if (!opened.ok()) return DataCause(opened.status());
    other = *std::move(opened);
    dataset = other.get();
  } else {
    ASSIGN_OR_RETURN(own, OpenGangData(context, assignment, store));
    RETURN_IF_ERROR(CheckSameData(*model.reader, assignment.spec(), *own));
    RETURN_IF_ERROR(CheckFits(*own, model));
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

absl::Status RunKind(const RankContext& context,
                     const v1::RankAssignment& assignment, Store& store,
                     const LoadedModel& model) {
  const v1::Action& action = assignment.spec().action();
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

}  // namespace

absl::Status RunAction(const RankContext& context,
                       const v1::RankAssignment& assignment, Store& store) {
  const v1::Action& action = assignment.spec().action();
  ASSIGN_OR_RETURN(const LoadedModel model,
                   LoadModel(context, action.checkpoint()));
  const absl::Status status = RunKind(context, assignment, store, model);
  // What is still under way works on the model's memory, which goes next.
  if (!status.ok()) context.AbortAll();
  return status;
}

}  // namespace lockstep
