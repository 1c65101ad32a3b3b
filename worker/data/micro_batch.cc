#include "worker/data/micro_batch.h"

namespace lockstep {

void MicroBatch::Clear() {
  tokens.clear();
  positions.clear();
  sample_positions.clear();
  samples.clear();
  targets.clear();
  segment_bounds.clear();
  sample_bounds.clear();
  max_segment_rows = 0;
}

}  // namespace lockstep
