// Arenas of optimizer states, and views of one range of all arenas.
#ifndef LOCKSTEP_WORKER_OPTIM_STATE_ARENA_H_
#define LOCKSTEP_WORKER_OPTIM_STATE_ARENA_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/owned_tensor.h"
#include "kernels/step_scalars.h"
#include "kernels/stream.h"
#include "worker/nn/parameter_store.h"

namespace lockstep {

// One zero for each parameter: (elements,) fp32.
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
  ArenaSlicer(const ParameterStore& store, FlatRange range)
      : store_(store), range_(range) {}
  Tensor Of(const Tensor& arena) const {
    return arena.Slice(range_.begin, range_.end - range_.begin);
  }
  Tensor master() const { return Of(store_.master()); }
  Tensor gradient() const { return Of(store_.gradient()); }
  // Empty in fp32.
  Tensor compute_copy() const {
    return store_.has_compute_copy() ? Of(store_.compute()) : Tensor();
  }

 private:
  const ParameterStore& store_;
  const FlatRange range_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_OPTIM_STATE_ARENA_H_
