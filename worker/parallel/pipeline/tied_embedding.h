// A token embedding that is tied to a head on another pipeline stage: both
// stages hold it, and its gradient is the sum of theirs (Narayanan et al.,
// arXiv:2104.04473, section 4, on Megatron's embedding groups).
#ifndef LOCKSTEP_WORKER_PARALLEL_PIPELINE_TIED_EMBEDDING_H_
#define LOCKSTEP_WORKER_PARALLEL_PIPELINE_TIED_EMBEDDING_H_

#include "absl/status/status.h"
#include "kernels/stream.h"
#include "worker/nn/parameter_store.h"
#include "worker/parallel/pipeline/pipeline.h"

namespace lockstep {

// Adds up the gradients of the stages' shards, on the ranks of the two stages;
// elsewhere, and where nothing is shared, it does nothing. After data
// parallelism has finished a step's gradients. `step` is the same on both, and
// differs from call to call.
absl::Status SumTiedGradients(const PipelinePlace& place, Stream& stream,
                              const ParameterStore& store, uint64_t step);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_PARALLEL_PIPELINE_TIED_EMBEDDING_H_
