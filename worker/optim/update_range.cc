#include "worker/optim/update_range.h"

namespace lockstep {

std::vector<UpdateRange> UpdateRanges(const ParameterStore& store,
                                      RangeMerging merging) {
  std::vector<UpdateRange> ranges;
  for (const ShardPiece& piece : store.pieces()) {
    const LogicalTensor& tensor = store.tensors()[piece.tensor];
    if (!tensor.trainable) continue;
    const bool joins = merging == RangeMerging::kNeighbours &&
                       !ranges.empty() &&
                       ranges.back().segment == piece.segment &&
                       ranges.back().decay == tensor.decay &&
                       ranges.back().range.end == piece.range.begin;
    if (joins) {
      ranges.back().range.end = piece.range.end;
    } else {
      ranges.push_back(
          {piece.segment, piece.range, tensor.decay, piece.tensor});
    }
  }
  return ranges;
}

std::vector<UpdateRange> CountedRanges(const ParameterStore& store) {
  std::vector<UpdateRange> ranges;
  for (const UpdateRange& range : UpdateRanges(store, RangeMerging::kNone)) {
    if (!store.tensors()[range.tensor].counted) continue;
    if (!ranges.empty() && ranges.back().segment == range.segment &&
        ranges.back().range.end == range.range.begin) {
      ranges.back().range.end = range.range.end;
    } else {
      ranges.push_back(range);
    }
  }
  return ranges;
}

}  // namespace lockstep
