// Initial values of parameters: pure functions of (seed, name, element), so
// that they depend on no layout.
#ifndef LOCKSTEP_WORKER_NN_INITIALIZER_H_
#define LOCKSTEP_WORKER_NN_INITIALIZER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/model/logical_tensor.h"

namespace lockstep {

// Writes elements [offset, offset + values.size()) of `tensor`, in host memory.
// Normal values come from Philox4x32-10 by Box and Muller's transform.
void InitializeValues(const LogicalTensor& tensor, uint64_t seed,
                      int64_t offset, absl::Span<float> values);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_INITIALIZER_H_
