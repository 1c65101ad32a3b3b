// The typed forms of a job's model and training.
#include "absl/strings/str_cat.h"
#include "common/spec/job_spec.h"
#include "common/spec/spec_checks.h"

namespace lockstep {

absl::StatusOr<ModelSpec> MakeModelSpec(const v1::JobSpec& spec,
                                        int64_t vocabulary, int64_t classes) {
  const v1::ModelSpec& from = spec.model();
  ModelSpec model;
  model.family = from.family();
  model.task = spec.task();
  model.layers = from.layers();
  model.width = from.width();
  model.heads = from.heads();
  model.kv_heads = from.kv_heads();
  model.head_width = from.head_width();
  model.feed_forward_width = from.feed_forward_width();
  model.vocabulary = from.has_vocabulary() ? from.vocabulary() : vocabulary;
  model.dropout = from.dropout();
  model.norm_epsilon = from.norm_epsilon();
  model.tied_embeddings = from.tied_embeddings();
  model.attention_bias = from.attention_bias();
  if (from.has_maximum_positions()) {
    model.maximum_positions = from.maximum_positions();
  }
  if (from.has_rope_theta()) model.rope_theta = from.rope_theta();
  if (model.vocabulary < vocabulary) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.vocabulary is ", model.vocabulary, ", want at least the ",
        vocabulary, " ids that the tokenizer or the data have"));
  }
  if (model.vocabulary < 1 || model.vocabulary > spec_internal::kMostIds) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.vocabulary is ", model.vocabulary, ", want 1 to ",
                     spec_internal::kMostIds));
  }
  if (spec.task() == v1::TASK_CLASSIFICATION) {
    if (classes < 2 || classes > spec_internal::kMostIds) {
      return absl::InvalidArgumentError(absl::StrCat(
          "data.train has ", classes,
          " labels, want at least 2 for classification and at most ",
          spec_internal::kMostIds));
    }
    model.classes = classes;
  }
  return model;
}

TrainingSpec MakeTrainingSpec(const v1::JobSpec& spec) {
  const v1::TrainSpec& from = spec.train();
  TrainingSpec training;
  training.global_batch = from.global_batch();
  training.sequence_length = from.sequence_length();
  if (from.has_steps()) training.steps = from.steps();
  if (from.has_epochs()) training.epochs = from.epochs();
  training.precision = from.precision();
  training.seed = from.seed();

  const v1::OptimizerSpec& optimizer = from.optimizer();
  training.optimizer.name = optimizer.name();
  training.optimizer.learning_rate = optimizer.learning_rate();
  if (from.has_learning_rate_scaling()) {
    training.optimizer.learning_rate *=
        static_cast<double>(from.global_batch()) /
        static_cast<double>(from.learning_rate_scaling().reference_batch());
  }
  if (optimizer.betas_size() == 2) {
    training.optimizer.beta1 = optimizer.betas(0);
    training.optimizer.beta2 = optimizer.betas(1);
  }
  if (optimizer.has_epsilon()) training.optimizer.epsilon = optimizer.epsilon();
  training.optimizer.weight_decay = optimizer.weight_decay();
  if (optimizer.has_momentum()) {
    training.optimizer.momentum = optimizer.momentum();
  }
  if (optimizer.has_trust_coefficient()) {
    training.optimizer.trust_coefficient = optimizer.trust_coefficient();
  }

  training.schedule.name = from.schedule().name();
  training.schedule.warmup_steps = from.schedule().warmup_steps();
  training.schedule.minimum_ratio = from.schedule().minimum_ratio();
  if (from.schedule().has_decay_steps()) {
    training.schedule.decay_steps = from.schedule().decay_steps();
  }
  if (from.has_clip_grad_norm()) {
    training.clip_grad_norm = from.clip_grad_norm();
  }
  if (from.has_guard_every()) training.guard_every = from.guard_every();
  if (from.has_evaluate_every()) {
    training.evaluate_every = from.evaluate_every();
  }
  if (spec.checkpoint().has_every_steps()) {
    training.checkpoint_every = spec.checkpoint().every_steps();
  }
  training.checkpoints_kept = spec.checkpoint().keep();
  return training;
}

}  // namespace lockstep
