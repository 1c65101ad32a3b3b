#include "common/model/state_count.h"

#include <algorithm>

#include "common/model/workspace.h"

namespace lockstep {

StateCounter::StateCounter(const ModelPart& part, const TrainingSpec& training,
                           const v1::Layout& layout)
    : ranks_(layout.fsdp() * layout.cp()),
      stage_(ranks_ > 1 ? layout.zero_stage() : 0),
      replicas_(static_cast<int>(layout.dp())),
      copies_(training.precision == v1::PRECISION_BF16),
      tied_(part.tied() && layout.pp() == 1),
      tensors_(DescribePart(part)),
      segments_(PlanSegments(tensors_, static_cast<int>(ranks_))) {}

int64_t StateCounter::Parameters() const {
  int64_t bytes = 0;
  for (const Segment& segment : segments_) {
    bytes += (stage_ < 3 ? Whole(segment) : segment.shard_elements) *
             WidthOf(segment);
    if (Copied(segment)) bytes += 4 * segment.shard_elements;
  }
  return bytes;
}

int64_t StateCounter::Gradients() const {
  int64_t elements = 0;
  for (const Segment& segment : segments_) {
    elements += stage_ < 2 ? Whole(segment) : segment.shard_elements;
  }
  return 4 * elements;
}

int64_t StateCounter::States(int64_t per_element) const {
  int64_t elements = 0;
  for (const Segment& segment : segments_) elements += segment.shard_elements;
  return per_element * elements;
}

int64_t StateCounter::Gathered() const {
  if (stage_ < 2) return 0;
  const int units = segments_.back().unit + 1;
  int64_t most = 0;
  for (int unit = std::max(0, segments_.front().unit - 1); unit + 1 < units;
       ++unit) {
    // Backward: this unit's and the next one's parameters and gradients. What
    // is added to a shard lies beside it for a while.
    int64_t bytes = UnitGradients(unit) + UnitGradients(unit + 1) +
                    UnitGradients(unit + 1) / ranks_ +
                    (unit + 2 == units && tied_ ? UnitGradients(0) : 0);
    if (stage_ == 3) {
      bytes += UnitParameters(unit) + UnitParameters(unit + 1) +
               (unit + 2 == units && tied_ ? UnitParameters(0) : 0);
    }
    most = std::max(most, bytes);
  }
  return most;
}

int64_t StateCounter::ReduceScratch() const {
  int64_t reduced = 0;
  for (const Segment& segment : segments_) {
    // Buckets of whole gradients may join all of them.
    reduced = stage_ == 0 ? reduced + 4 * Whole(segment)
                          : std::max(reduced, 4 * Whole(segment));
  }
  return std::max(ReduceScratchBytes(reduced, static_cast<int>(ranks_)),
                  ReduceScratchBytes(reduced, replicas_));
}

int64_t StateCounter::TiedGradients() const {
  for (const Segment& segment : segments_) {
    if (tensors_[segment.first_tensor].on_two_stages) {
      return 4 * segment.shard_elements;
    }
  }
  return 0;
}

int64_t StateCounter::UnitParameters(int unit) const {
  int64_t bytes = 0;
  for (const Segment& segment : segments_) {
    if (segment.unit == unit) bytes += WidthOf(segment) * Whole(segment);
  }
  return bytes;
}

int64_t StateCounter::UnitGradients(int unit) const {
  int64_t bytes = 0;
  for (const Segment& segment : segments_) {
    if (segment.unit == unit) bytes += 4 * Whole(segment);
  }
  return bytes;
}

}  // namespace lockstep
