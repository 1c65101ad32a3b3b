#include "common/model/segment.h"

namespace lockstep {
namespace {

// Shards begin at whole cache lines of fp32.
constexpr int64_t kShardAlignment = 16;

}  // namespace

std::vector<Segment> PlanSegments(const std::vector<LogicalTensor>& tensors,
                                  int ranks) {
  std::vector<Segment> segments;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const LogicalTensor& tensor = tensors[i];
    const bool matrix = tensor.shape.size() > 1;
    // What two stages hold is sharded by itself, so that both have the same
    // shards of it.
    const bool apart =
        tensor.on_two_stages || (i > 0 && tensors[i - 1].on_two_stages);
    if (segments.empty() || segments.back().unit != tensor.unit ||
        segments.back().matrices != matrix || apart) {
      segments.push_back({tensor.unit, matrix, static_cast<int>(i)});
    }
    segments.back().end_tensor = static_cast<int>(i) + 1;
    segments.back().elements += tensor.held_elements();
  }
  for (Segment& segment : segments) {
    segment.shard_elements = segment.elements;
    if (ranks == 1) continue;
    const int64_t share = (segment.elements + ranks - 1) / ranks;
    segment.shard_elements =
        (share + kShardAlignment - 1) / kShardAlignment * kShardAlignment;
  }
  return segments;
}

}  // namespace lockstep
