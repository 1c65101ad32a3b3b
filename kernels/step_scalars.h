// Scalars of one optimizer step. They live in device memory and kernels read
// them by pointer, so that a captured step can be replayed. Plain data, shared
// by host and device code.
#ifndef LOCKSTEP_KERNELS_STEP_SCALARS_H_
#define LOCKSTEP_KERNELS_STEP_SCALARS_H_

#include <cstdint>

namespace lockstep {

struct StepScalars {
  // Optimizer step, from 1; also a part of every dropout key.
  uint32_t step = 1;
  // Whether the gradient norm was finite; the update does nothing when 0.
  uint32_t finite = 1;
  float learning_rate = 0.0f;
  // 1 / valid target tokens of the global batch: makes the loss a mean.
  float inverse_valid_tokens = 0.0f;
  // Gradients are multiplied by this in the update: min(1, clip / norm).
  float clip_factor = 1.0f;
  // 1 - beta^step of both moments (AdamW, LAMB).
  float bias_correction1 = 1.0f;
  float bias_correction2 = 1.0f;
};

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_STEP_SCALARS_H_
