// The train section of a job file.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/spec/spec_checks.h"
#include "common/spec/spec_printer.h"
#include "common/status_macros.h"

namespace lockstep::spec_internal {
namespace {

absl::Status CheckOptimizer(const v1::OptimizerSpec& optimizer) {
  if (!optimizer.has_learning_rate()) {
    return absl::InvalidArgumentError(
        "train.optimizer.learning_rate is missing");
  }
  RETURN_IF_ERROR(CheckPositive("train.optimizer.learning_rate",
                                optimizer.learning_rate()));
  const v1::OptimizerName name =
      optimizer.name() == v1::OPTIMIZER_NAME_UNSPECIFIED
          ? v1::OPTIMIZER_NAME_ADAMW
          : optimizer.name();
  const std::string word =
      EnumWord(*v1::OptimizerName_descriptor()->FindValueByNumber(name));
  const bool adaptive =
      name == v1::OPTIMIZER_NAME_ADAMW || name == v1::OPTIMIZER_NAME_LAMB;
  RETURN_IF_ERROR(CheckNotOf(!adaptive && optimizer.betas_size() > 0,
                             "train.optimizer.betas", "adamw and lamb", word));
  RETURN_IF_ERROR(CheckNotOf(!adaptive && optimizer.has_epsilon(),
                             "train.optimizer.epsilon", "adamw and lamb",
                             word));
  RETURN_IF_ERROR(CheckNotOf(adaptive && optimizer.has_momentum(),
                             "train.optimizer.momentum", "sgd and lars", word));
  RETURN_IF_ERROR(CheckNotOf(
      name != v1::OPTIMIZER_NAME_LARS && optimizer.has_trust_coefficient(),
      "train.optimizer.trust_coefficient", "lars", word));
  if (optimizer.betas_size() != 0 && optimizer.betas_size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("train.optimizer.betas has ",
                                                   optimizer.betas_size(),
                                                   " numbers, want 2"));
  }
  for (int i = 0; i < optimizer.betas_size(); ++i) {
    RETURN_IF_ERROR(CheckBelowOne(
        absl::StrCat("train.optimizer.betas[", i, "]"), optimizer.betas(i)));
  }
  if (optimizer.has_epsilon()) {
    RETURN_IF_ERROR(
        CheckPositive("train.optimizer.epsilon", optimizer.epsilon()));
  }
  if (optimizer.has_weight_decay()) {
    RETURN_IF_ERROR(CheckNotNegative("train.optimizer.weight_decay",
                                     optimizer.weight_decay()));
  }
  if (optimizer.has_momentum()) {
    RETURN_IF_ERROR(
        CheckBelowOne("train.optimizer.momentum", optimizer.momentum()));
  }
  if (optimizer.has_trust_coefficient()) {
    RETURN_IF_ERROR(CheckPositive("train.optimizer.trust_coefficient",
                                  optimizer.trust_coefficient()));
  }
  return absl::OkStatus();
}

absl::Status CheckSchedule(const v1::TrainSpec& train) {
  const v1::ScheduleSpec& schedule = train.schedule();
  const v1::ScheduleName name = schedule.name() == v1::SCHEDULE_NAME_UNSPECIFIED
                                    ? v1::SCHEDULE_NAME_CONSTANT
                                    : schedule.name();
  const std::string word =
      EnumWord(*v1::ScheduleName_descriptor()->FindValueByNumber(name));
  RETURN_IF_ERROR(CheckNotOf(
      name == v1::SCHEDULE_NAME_CONSTANT && schedule.has_minimum_ratio(),
      "train.schedule.minimum_ratio", "linear, cosine and wsd", word));
  RETURN_IF_ERROR(
      CheckNotOf(name != v1::SCHEDULE_NAME_WSD && schedule.has_decay_steps(),
                 "train.schedule.decay_steps", "wsd", word));
  const int64_t most = train.has_steps() ? train.steps() : kMostSteps;
  RETURN_IF_ERROR(CheckRange("train.schedule.warmup_steps",
                             schedule.warmup_steps(), 0, most));
  if (schedule.has_minimum_ratio() &&
      !(schedule.minimum_ratio() >= 0.0 && schedule.minimum_ratio() <= 1.0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("train.schedule.minimum_ratio is ",
                     schedule.minimum_ratio(), ", want 0 to 1"));
  }
  if (schedule.has_decay_steps()) {
    RETURN_IF_ERROR(CheckRange("train.schedule.decay_steps",
                               schedule.decay_steps(), 1, most));
    if (schedule.warmup_steps() + schedule.decay_steps() > most) {
      return absl::InvalidArgumentError(
          absl::StrCat("train.schedule: warmup_steps ", schedule.warmup_steps(),
                       " and decay_steps ", schedule.decay_steps(),
                       " together pass train.steps ", most));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTrain(const v1::TrainSpec& train) {
  RETURN_IF_ERROR(CheckRequired("train.global_batch", train.global_batch(),
                                kMostGlobalBatch));
  RETURN_IF_ERROR(CheckRequired("train.sequence_length",
                                train.sequence_length(), kMostPositions));
  if (train.has_steps() && train.has_epochs()) {
    return absl::InvalidArgumentError(
        "train has both steps and epochs, want one");
  }
  if (!train.has_steps() && !train.has_epochs()) {
    return absl::InvalidArgumentError(
        "train.steps is missing (or train.epochs in its place)");
  }
  if (train.has_steps()) {
    RETURN_IF_ERROR(CheckRange("train.steps", train.steps(), 1, kMostSteps));
  } else {
    RETURN_IF_ERROR(CheckRange("train.epochs", train.epochs(), 1, 1'000'000));
  }
  RETURN_IF_ERROR(CheckOptimizer(train.optimizer()));
  RETURN_IF_ERROR(CheckSchedule(train));
  if (train.has_learning_rate_scaling()) {
    RETURN_IF_ERROR(CheckRequired(
        "train.learning_rate_scaling.reference_batch",
        train.learning_rate_scaling().reference_batch(), kMostGlobalBatch));
  }
  if (train.has_clip_grad_norm()) {
    RETURN_IF_ERROR(
        CheckPositive("train.clip_grad_norm", train.clip_grad_norm()));
  }
  if (train.has_guard_every()) {
    RETURN_IF_ERROR(
        CheckRange("train.guard_every", train.guard_every(), 1, kMostSteps));
  }
  if (train.has_evaluate_every()) {
    RETURN_IF_ERROR(CheckRange("train.evaluate_every", train.evaluate_every(),
                               1, kMostSteps));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::spec_internal
