// A model's sizes as the engine and the planner see them: every default is
// filled in, every value has been checked. Made by common/spec/job_spec.h only.
#ifndef LOCKSTEP_COMMON_SPEC_MODEL_SPEC_H_
#define LOCKSTEP_COMMON_SPEC_MODEL_SPEC_H_

#include <cstdint>

#include "lockstep/v1/job.pb.h"

namespace lockstep {

using ModelFamily = v1::ModelFamily;
using Task = v1::Task;

struct ModelSpec {
  ModelFamily family = v1::MODEL_FAMILY_GPT2;
  Task task = v1::TASK_LANGUAGE_MODEL;
  int64_t layers = 0;
  int64_t width = 0;               // C
  int64_t heads = 0;               // H
  int64_t kv_heads = 0;            // KV, divides heads
  int64_t head_width = 0;          // D
  int64_t feed_forward_width = 0;  // F
  int64_t vocabulary = 0;          // V
  int64_t maximum_positions = 0;   // rows of the position embedding (gpt2)
  int64_t classes = 0;             // classification only
  double dropout = 0.0;
  double rope_theta = 10000.0;
  double norm_epsilon = 1e-5;
  bool tied_embeddings = true;
  bool attention_bias = true;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SPEC_MODEL_SPEC_H_
