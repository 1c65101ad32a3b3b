// The arithmetic of reducing collectives: sums and maxima over the ranks'
// contributions, always in rank order, so that the result depends neither on
// timing nor on which rank computes it nor on how a tensor was cut up.
#ifndef LOCKSTEP_WORKER_DIST_REDUCTION_H_
#define LOCKSTEP_WORKER_DIST_REDUCTION_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/dtype.h"
#include "worker/dist/process_group.h"

namespace lockstep {

// out[i] = inputs[0][i] op inputs[1][i] op ..., from left to right, for `count`
// elements of fp32 or bf16. bf16 is reduced in fp32 and rounded once, to
// nearest even. A NaN in any input gives NaN. `out` may be one of `inputs`;
// otherwise they don't overlap.
void ReduceInOrder(absl::Span<const void* const> inputs, void* out,
                   int64_t count, DType dtype, ReduceOp op);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_REDUCTION_H_
