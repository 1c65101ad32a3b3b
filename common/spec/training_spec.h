// How a job trains, as the engine sees it: defaults filled in, values checked.
// Made by common/spec/job_spec.h only.
#ifndef LOCKSTEP_COMMON_SPEC_TRAINING_SPEC_H_
#define LOCKSTEP_COMMON_SPEC_TRAINING_SPEC_H_

#include <cstdint>
#include <optional>

#include "lockstep/v1/job.pb.h"

namespace lockstep {

using OptimizerName = v1::OptimizerName;
using ScheduleName = v1::ScheduleName;
using Precision = v1::Precision;

struct OptimizerSpec {
  OptimizerName name = v1::OPTIMIZER_NAME_ADAMW;
  // Peak rate, after linear scaling.
  double learning_rate = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.9;
  double trust_coefficient = 0.001;
};

struct ScheduleSpec {
  ScheduleName name = v1::SCHEDULE_NAME_CONSTANT;
  int64_t warmup_steps = 0;
  double minimum_ratio = 0.0;
  // wsd only; absent: a tenth of all steps.
  std::optional<int64_t> decay_steps;
};

struct TrainingSpec {
  int64_t global_batch = 0;
  int64_t sequence_length = 0;
  // Exactly one of the two is set.
  std::optional<int64_t> steps;
  std::optional<int64_t> epochs;
  Precision precision = v1::PRECISION_FP32;
  uint64_t seed = 0;
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  std::optional<double> clip_grad_norm;
  std::optional<int64_t> evaluate_every;
  // Absent: never.
  std::optional<int64_t> guard_every;
  // Absent: only at the last step.
  std::optional<int64_t> checkpoint_every;
  int64_t checkpoints_kept = 2;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SPEC_TRAINING_SPEC_H_
