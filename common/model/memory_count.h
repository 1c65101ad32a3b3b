// What a model under a layout keeps in device memory, counted before it runs:
// by category, for one rank, with the same rules as the engine's allocator.
#ifndef LOCKSTEP_COMMON_MODEL_MEMORY_COUNT_H_
#define LOCKSTEP_COMMON_MODEL_MEMORY_COUNT_H_

#include <cstdint>

#include "common/spec/model_spec.h"
#include "common/spec/training_spec.h"
#include "lockstep/v1/step_report.pb.h"

namespace lockstep {

// Counted bytes of the fullest rank. `layout` must be concrete.
v1::MemoryReport CountMemory(const ModelSpec& model,
                             const TrainingSpec& training,
                             const v1::Layout& layout);

// FLOPs that training takes per token, forward and backward, as MFU counts
// them: 6 N + 12 L T C with the (tied) embedding once (Chowdhery et al.,
// arXiv:2204.02311, appendix B; attention not halved for causality).
double TrainingFlopsPerToken(const ModelSpec& model, int64_t sequence_length);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MODEL_MEMORY_COUNT_H_
