// Segments: how a model's parameters are cut into flat ranges that are sharded,
// gathered and reduced as wholes (the flat parameters of FSDP: Zhao et al.,
// arXiv:2304.11277, section 3.2). Pure: the engine builds from it and the
// planner counts from it.
#ifndef LOCKSTEP_COMMON_MODEL_SEGMENT_H_
#define LOCKSTEP_COMMON_MODEL_SEGMENT_H_

#include <cstdint>
#include <vector>

#include "common/model/logical_tensor.h"

namespace lockstep {

// Neighbouring logical tensors of one unit, all matrices or all vectors, in
// storage order. Matrices are computed with in the job's precision, vectors in
// fp32, so each kind is gathered in one dtype.
struct Segment {
  int unit = 0;
  bool matrices = false;
  // Indices [first_tensor, end_tensor) of the model's logical tensors.
  int first_tensor = 0;
  int end_tensor = 0;
  int64_t elements = 0;
  // Elements of each rank's part. The last ranks' parts run past `elements`
  // where it doesn't divide evenly: what is there is zero and stays so.
  int64_t shard_elements = 0;

  int64_t padded_elements(int ranks) const { return shard_elements * ranks; }
};

// `tensors` in storage order, cut into one shard for each of `ranks`. One
// rank's shards are the segments themselves, without padding.
std::vector<Segment> PlanSegments(const std::vector<LogicalTensor>& tensors,
                                  int ranks);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MODEL_SEGMENT_H_
