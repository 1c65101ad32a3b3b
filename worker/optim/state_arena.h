// Arenas of optimizer states, and views of one range of all arenas.
#ifndef LOCKSTEP_WORKER_OPTIM_STATE_ARENA_H_
#define LOCKSTEP_WORKER_OPTIM_STATE_ARENA_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/owned_tensor.h"
#include "kernels/step_scalars.h"
#include "kernels/stream.h"
#include "worker/optim/update_range.h"

namespace lockstep {

// One zero for each element of this rank's shards: (shard_elements,) fp32.
absl::StatusOr<OwnedTensor> MakeStateArena(Stream& stream,
                                           const ParameterStore& store);
// (count,) fp32, uninitialised.
absl::StatusOr<OwnedTensor> MakeRatios(Stream& stream, size_t count);
// The scalars, from device memory.
absl::StatusOr<StepScalars> ReadScalars(Stream& stream,
                                        const StepScalars* scalars);

// The same range of several arenas.
class ArenaSlicer {
 public:
  ArenaSlicer(const ParameterStore& store, const UpdateRange& update)
      : store_(store), update_(update) {}
  // Of an arena of states.
  Tensor Of(const Tensor& arena) const {
    return arena.Slice(
        store_.shard_begin(update_.segment) + update_.range.begin,
        update_.range.size());
  }
  Tensor master() const { return Part(store_.master(update_.segment)); }
  Tensor gradient() const { return Part(store_.gradient(update_.segment)); }
  // Empty where the master is computed with.
  Tensor compute_copy() const {
    const Tensor& copy = store_.compute_copy(update_.segment);
    return copy.empty() ? Tensor() : Part(copy);
  }

 private:
  Tensor Part(const Tensor& shard) const {
    return shard.Slice(update_.range.begin, update_.range.size());
  }

  const ParameterStore& store_;
  const UpdateRange& update_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_OPTIM_STATE_ARENA_H_
