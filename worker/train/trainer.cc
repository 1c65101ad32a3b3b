#include "worker/train/trainer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/model/memory_count.h"
#include "common/spec/job_spec.h"
#include "common/status_macros.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/data/batch_loader.h"
#include "worker/train/evaluator.h"
#include "worker/train/guard.h"
#include "worker/train/process_memory.h"
#include "worker/train/train_step.h"

namespace lockstep {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool Due(std::optional<int64_t> every, int64_t step) {
  return every.has_value() && step % *every == 0;
}

}  // namespace

Trainer::Trainer(const RankContext& context,
                 const v1::RankAssignment& assignment, const PreparedData& data)
    : context_(context), assignment_(assignment), data_(data) {}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    const RankContext& context, const v1::RankAssignment& assignment,
    const PreparedData& data) {
  std::unique_ptr<Trainer> trainer(new Trainer(context, assignment, data));
  RETURN_IF_ERROR(trainer->Start());
  return trainer;
}

absl::Status Trainer::Start() {
  const auto alive = [this] { context_.reporter.SetPhase(0, "loading"); };
  alive();
  if (context_.speaks()) {
    SweepStaleCheckpoints(assignment_.job_dir(),
                          assignment_.gang().generation());
  }

  const v1::JobSpec& spec = assignment_.spec();
  ASSIGN_OR_RETURN(const ModelSpec model,
                   MakeModelSpec(spec, data_.vocabulary(),
                                 static_cast<int64_t>(data_.labels().size())));
  const TrainingSpec training = MakeTrainingSpec(spec);
  ASSIGN_OR_RETURN(
      state_, MakeTrainingState(context_, model, training, Purpose::kTrain));
  if (assignment_.resume_checkpoint().empty()) {
    RETURN_IF_ERROR(Initialize(context_, state_, alive));
  } else {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<CheckpointReader> reader,
        CheckpointReader::Open(assignment_.resume_checkpoint(), alive));
    RETURN_IF_ERROR(CheckSameData(*reader, spec, data_));
    RETURN_IF_ERROR(LoadCheckpoint(context_, *reader, state_));
  }

  total_steps_ =
      training.steps.has_value()
          ? *training.steps
          : state_.step + CeilDiv(*training.epochs * data_.train().samples() -
                                      state_.data_position,
                                  training.global_batch);
  if (state_.step >= total_steps_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "nothing to train: the checkpoint ", assignment_.resume_checkpoint(),
        " is at step ", state_.step, ", and the job ends at step ",
        total_steps_, " (steps count from the first job's start)"));
  }
  ReportFacts();
  return absl::OkStatus();
}

void Trainer::ReportFacts() {
  if (!context_.speaks()) return;
  v1::RankReport report;
  v1::RunFacts& facts = *report.mutable_facts();
  facts.set_steps(total_steps_);
  facts.set_parameters(ParameterCount(state_.model_spec));
  facts.set_train_tokens(data_.train().targets());
  facts.set_train_samples(data_.train().samples());
  if (data_.validation() != nullptr) {
    facts.set_validation_targets(data_.validation()->targets());
  }
  facts.set_vocabulary(state_.model_spec.vocabulary);
  facts.set_start_step(state_.step);
  facts.set_flops_per_token(TrainingFlopsPerToken(
      state_.model_spec, state_.training_spec.sequence_length));
  context_.reporter.Report(std::move(report));
}

void Trainer::ReportMemory() {
  v1::RankReport report;
  v1::MemoryReport& memory = *report.mutable_memory();
  memory = MemoryReportOf(context_.device.allocator());
  memory.set_rank(context_.world.rank());
  if (assignment_.predicted_peak_bytes() > 0) {
    memory.set_predicted_peak_bytes(assignment_.predicted_peak_bytes());
  }
  context_.reporter.Report(std::move(report));
}

void Trainer::ReportStep(const v1::StepReport& step) {
  v1::Progress progress;
  progress.set_phase("training");
  progress.set_fraction(static_cast<double>(step.step()) /
                        static_cast<double>(total_steps_));
  progress.set_memory_bytes(context_.device.allocator().Use().total.peak_bytes);
  progress.set_tokens_per_second(static_cast<double>(step.tokens()) /
                                 step.seconds());
  context_.reporter.SetProgress(step.step(), progress);
  if (!context_.speaks()) return;
  v1::RankReport report;
  *report.mutable_step() = step;
  context_.reporter.Report(std::move(report));
}

absl::Status Trainer::Evaluate() {
  if (data_.validation() == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(v1::EvaluationReport evaluation,
                   lockstep::Evaluate(context_, state_, *data_.validation(),
                                      assignment_.layout().micro_batch()));
  if (!context_.speaks()) return absl::OkStatus();
  v1::RankReport report;
  *report.mutable_evaluation() = std::move(evaluation);
  context_.reporter.Report(std::move(report));
  return absl::OkStatus();
}

absl::Status Trainer::Save() {
  context_.reporter.SetPhase(state_.step, "saving");
  CheckpointFacts facts;
  facts.job_dir = assignment_.job_dir();
  facts.job = assignment_.gang().job();
  facts.generation = assignment_.gang().generation();
  facts.spec = assignment_.spec();
  facts.data_digest = data_.digest();
  facts.labels = data_.labels();
  facts.tokenizer_files = data_.tokenizer_files();
  return SaveCheckpoint(context_, state_, facts);
}

absl::Status Trainer::Run() {
  const TrainingSpec& training = state_.training_spec;
  BatchLoader::Options options;
  options.global_batch = training.global_batch;
  options.share = context_.share;
  options.micro_batch = assignment_.layout().micro_batch();
  options.first_position = state_.data_position;
  if (training.epochs.has_value()) {
    options.total_positions = *training.epochs * data_.train().samples();
  }
  BatchLoader loader(data_.train(),
                     SampleOrder(training.seed, data_.train().samples()),
                     options);
  ASSIGN_OR_RETURN(const std::unique_ptr<TrainStep> step,
                   TrainStep::Create(context_, state_, total_steps_));

  while (state_.step < total_steps_) {
    const absl::Duration begin = context_.clock.Uptime();
    ASSIGN_OR_RETURN(const StepBatch batch, loader.Next());
    ASSIGN_OR_RETURN(const StepResult result, step->Run(batch));
    v1::StepReport report;
    report.set_step(state_.step);
    report.set_loss(result.loss);
    report.set_grad_norm(result.grad_norm);
    report.set_learning_rate(result.learning_rate);
    report.set_tokens(result.tokens);
    report.set_seconds(absl::ToDoubleSeconds(context_.clock.Uptime() - begin));
    ReportStep(report);

    if (Due(training.guard_every, state_.step)) {
      RETURN_IF_ERROR(CheckEqualAcrossRanks(context_, state_));
    }
    const bool last = state_.step == total_steps_;
    if (last || Due(training.evaluate_every, state_.step)) {
      RETURN_IF_ERROR(Evaluate());
    }
    if (last || Due(training.checkpoint_every, state_.step)) {
      RETURN_IF_ERROR(Save());
    }
    // Memory is at its peak after the first step; the last word counts.
    if (last || state_.step == 1) ReportMemory();
  }
  return absl::OkStatus();
}

}  // namespace lockstep
