// Dropout, and the counter-based randomness that all ops with dropout share.
#ifndef LOCKSTEP_KERNELS_OPS_DROPOUT_H_
#define LOCKSTEP_KERNELS_OPS_DROPOUT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/step_scalars.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace lockstep {

// Where each row of an activation comes from, whatever the layout.
//   sample:   (N,) uint32, low 32 bits of the global sample number
//   position: (N,) int32, index of the token within its sample
struct RowOrigin {
  Tensor sample;
  Tensor position;
};

// One place at which values are dropped. The bit of an element is a pure
// function of (seed, site, step, sample, position, element): Philox4x32-10
// (Salmon et al., SC 2011), key = the 64 bits of SiteKey(seed, site), counter =
// (element / 4, position, sample, step), word element % 4. The element is kept
// when that word is at least round(probability * 2^32), and then multiplied by
// 1 / (1 - probability).
struct Dropout {
  // 0: nothing is dropped, and no random bits are made.
  float probability = 0.0f;
  uint64_t key = 0;
  // In device memory; its `step` is read.
  const StepScalars* scalars = nullptr;
  RowOrigin rows;
};

// Key of site `site` (a number unique in the model). splitmix64 over both.
uint64_t SiteKey(uint64_t seed, uint64_t site);

namespace ops {

// out = x dropped and scaled; backward is the same function applied to the
// gradient. `element` counts columns, from `first_column` of the logical row.
//   x, out: (N, C), may be the same memory
absl::Status Dropout(Stream& stream, const Tensor& x,
                     const lockstep::Dropout& dropout, int64_t first_column,
                     const Tensor& out);

}  // namespace ops
}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_OPS_DROPOUT_H_
