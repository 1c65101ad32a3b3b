// The ranges of a rank's shards that an optimizer updates alike.
#ifndef LOCKSTEP_WORKER_OPTIM_UPDATE_RANGE_H_
#define LOCKSTEP_WORKER_OPTIM_UPDATE_RANGE_H_

#include <vector>

#include "worker/nn/parameter_store.h"

namespace lockstep {

struct UpdateRange {
  int segment = 0;
  // Within this rank's shard of the segment.
  FlatRange range;
  // Decay, and trust ratios, apply.
  bool decay = false;
  // The (first) logical tensor in it.
  int tensor = 0;
};

enum class RangeMerging {
  // Neighbours of one kind are one range: fewest, longest updates.
  kNeighbours,
  // A range per logical tensor, for optimizers with norms per tensor.
  kNone,
};

// Ranges of trainable tensors that this rank speaks for (LogicalTensor), fewest
// and longest.
std::vector<UpdateRange> CountedRanges(const ParameterStore& store);

// Trainable tensors' ranges in storage order.
std::vector<UpdateRange> UpdateRanges(const ParameterStore& store,
                                      RangeMerging merging);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_OPTIM_UPDATE_RANGE_H_
