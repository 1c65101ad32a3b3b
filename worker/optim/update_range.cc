#include "worker/optim/update_range.h"

namespace lockstep {

std::vector<UpdateRange> UpdateRanges(const ParameterStore& store,
                                      RangeMerging merging) {
  std::vector<UpdateRange> ranges;
  for (size_t i = 0; i < store.tensors().size(); ++i) {
    const LogicalTensor& tensor = store.tensors()[i];
    if (!tensor.trainable) continue;
    const FlatRange range = store.range(static_cast<int>(i));
    const bool joins = merging == RangeMerging::kNeighbours &&
                       !ranges.empty() && ranges.back().decay == tensor.decay &&
                       ranges.back().range.end == range.begin;
    if (joins) {
      ranges.back().range.end = range.end;
    } else {
      ranges.push_back({range, tensor.decay});
    }
  }
  return ranges;
}

}  // namespace lockstep
