// What a rank keeps of parameters, gradients and optimizer states by the stage
// of sharding, and what it gathers: counted as worker/nn/parameter_store and
// worker/parallel/data allocate. Pure.
#ifndef LOCKSTEP_COMMON_MODEL_STATE_COUNT_H_
#define LOCKSTEP_COMMON_MODEL_STATE_COUNT_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/model/model_part.h"
#include "common/model/segment.h"
#include "common/spec/training_spec.h"
#include "lockstep/v1/step_report.pb.h"

namespace lockstep {

// All in bytes.
class StateCounter {
 public:
  StateCounter(const ModelPart& part, const TrainingSpec& training,
               const v1::Layout& layout);

  int64_t Parameters() const;
  int64_t Gradients() const;
  int64_t States(int64_t per_element) const;
  // Units gathered at a time, and gradients on their way to their shards.
  int64_t Gathered() const;
  // What the collectives of data parallelism take.
  int64_t ReduceScratch() const;
  // The other stage's gradients of a tied embedding.
  int64_t TiedGradients() const;

 private:
  bool Copied(const Segment& segment) const {
    return copies_ && segment.matrices;
  }
  int64_t WidthOf(const Segment& segment) const {
    return Copied(segment) ? 2 : 4;
  }
  int64_t Whole(const Segment& segment) const {
    return segment.padded_elements(static_cast<int>(ranks_));
  }
  int64_t UnitParameters(int unit) const;
  int64_t UnitGradients(int unit) const;

  const int64_t ranks_;
  const int64_t stage_;
  const int replicas_;
  const bool copies_;
  // The head, the last unit, uses unit 0's embedding.
  const bool tied_;
  const std::vector<LogicalTensor> tensors_;
  const std::vector<Segment> segments_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MODEL_STATE_COUNT_H_
