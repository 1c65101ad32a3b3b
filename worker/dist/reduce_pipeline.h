// ReducePipeline: the reducing half of all-reduce, reduce and reduce-scatter.
//
// The input is cut into one segment per rank, whose owner reduces it, and every
// segment into pieces. Each rank sends piece c of every other segment to its
// owner and receives piece c of its own from all; pieces are in flight while
// earlier ones are reduced and handed on.
#ifndef LOCKSTEP_WORKER_DIST_REDUCE_PIPELINE_H_
#define LOCKSTEP_WORKER_DIST_REDUCE_PIPELINE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "worker/dist/direct_collectives.h"

namespace lockstep {

// Elements [begin, begin + count).
struct Piece {
  int64_t begin = 0;
  int64_t count = 0;
};

// `elements` cut into `ranks` segments, the first ones full and the last ones
// shorter or empty, and these into pieces of `piece_elements`.
class Segments {
 public:
  // Segments of `segment_elements` each.
  Segments(int64_t elements, int64_t segment_elements, int64_t piece_elements)
      : elements_(elements),
        segment_elements_(segment_elements),
        piece_elements_(std::max<int64_t>(1, piece_elements)) {}

  // Pieces of the longest segment.
  int64_t pieces() const {
    const int64_t longest = std::min(elements_, segment_elements_);
    return (longest + piece_elements_ - 1) / piece_elements_;
  }
  int64_t piece_elements() const { return piece_elements_; }
  Piece Segment(int rank) const {
    const int64_t begin = std::min(elements_, rank * segment_elements_);
    return {begin, std::min(elements_ - begin, segment_elements_)};
  }
  // Piece `index` of a rank's segment; may be empty.
  Piece PieceOf(int rank, int64_t index) const {
    const Piece segment = Segment(rank);
    const int64_t skip = std::min(segment.count, index * piece_elements_);
    return {segment.begin + skip,
            std::min(segment.count - skip, piece_elements_)};
  }

 private:
  const int64_t elements_;
  const int64_t segment_elements_;
  const int64_t piece_elements_;
};

// What the collective does around the reduction; either may be empty.
struct ReduceHooks {
  // Before the messages of piece `index` are posted.
  std::function<absl::Status(int64_t index)> post;
  // Once piece `index` of the own segment is reduced.
  std::function<absl::Status(int64_t index)> reduced;
};

// Reduces this rank's segment of `input` into `output`, which has the segment's
// elements and may be that part of `input`. `regions` hold `input`, one per
// peer (null for the own rank). Returns when all pieces are reduced; the last
// sends may still be under way. Uses the slots run.slot + index.
absl::Status ReduceOwnSegment(
    const CollectiveRun& run,
    const std::vector<std::unique_ptr<GlooLink::Region>>& regions,
    const Tensor& input, const Tensor& output, const Segments& segments,
    ReduceOp op, const ReduceHooks& hooks);

// Elements of a piece when `size` ranks reduce tensors of `dtype`.
int64_t PieceElements(int size, DType dtype);

// One region over `tensor` for each other rank.
std::vector<std::unique_ptr<GlooLink::Region>> RegisterForAll(
    GlooLink& link, const Tensor& tensor);

// Waits for all messages of all regions.
absl::Status FinishAll(
    const std::vector<std::unique_ptr<GlooLink::Region>>& regions,
    absl::Time deadline);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_REDUCE_PIPELINE_H_
