// What kernels need to know of a Dropout.
#ifndef LOCKSTEP_KERNELS_CPU_ROW_DROPOUT_H_
#define LOCKSTEP_KERNELS_CPU_ROW_DROPOUT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/level/kernels.h"
#include "kernels/ops/dropout.h"

namespace lockstep::cpu {

inline RowDropout ToRowDropout(const lockstep::Dropout& dropout) {
  RowDropout rows;
  if (dropout.probability <= 0.0f) return rows;
  rows.active = true;
  rows.key = dropout.key;
  rows.step = dropout.scalars->step;
  rows.threshold = static_cast<uint32_t>(std::min(
      std::round(static_cast<double>(dropout.probability) * 4294967296.0),
      4294967295.0));
  rows.scale = 1.0f / (1.0f - dropout.probability);
  rows.sample = dropout.rows.sample.data<uint32_t>();
  rows.position = dropout.rows.position.data<int32_t>();
  return rows;
}

}  // namespace lockstep::cpu

#endif  // LOCKSTEP_KERNELS_CPU_ROW_DROPOUT_H_
