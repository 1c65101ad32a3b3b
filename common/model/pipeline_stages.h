// How the units of a model are cut into pipeline stages. Pure.
#ifndef LOCKSTEP_COMMON_MODEL_PIPELINE_STAGES_H_
#define LOCKSTEP_COMMON_MODEL_PIPELINE_STAGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/model/portion.h"
#include "common/spec/model_spec.h"

namespace lockstep {

// The units [begin, end) of each of `stages` stages, in order, so that the
// costliest stage costs least, and among such cuts the sum of squared costs is
// least. Costs are training FLOPs of a token; the embedding's is nothing. Every
// stage has a unit. CHECK-fails for more stages than units.
std::vector<Portion> PlanStages(const ModelSpec& model, int64_t sequence_length,
                                int64_t stages);

// INVALID_ARGUMENT, naming key, got and wanted, if a model of layers + 2 units
// can't be cut into so many stages for `pp` ranks.
absl::Status CheckPipelineParallel(const ModelSpec& model, int64_t pp,
                                   int64_t virtual_stages);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MODEL_PIPELINE_STAGES_H_
