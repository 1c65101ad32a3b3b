// Pipeline schedules as data: what each rank does with which micro-batch, in
// order. One executor runs any list; the planner counts memory from the same.
//
// A rank holds `chunks` parts of the model, one per virtual stage: chunk c of
// rank r is stage c * ranks + r.
#ifndef LOCKSTEP_COMMON_MODEL_PIPELINE_SCHEDULE_H_
#define LOCKSTEP_COMMON_MODEL_PIPELINE_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "lockstep/v1/job.pb.h"

namespace lockstep {

struct PipelineAction {
  enum class Kind : uint8_t {
    kForward,
    // Gradients of the input and of the weights.
    kBackward,
    // The two apart: what comes later may fill a bubble.
    kBackwardInput,
    kBackwardWeights,
  };
  Kind kind = Kind::kForward;
  int micro_batch = 0;
  int chunk = 0;

  friend bool operator==(const PipelineAction&,
                         const PipelineAction&) = default;
};

struct PipelineShape {
  int rank = 0;
  int ranks = 1;
  // Virtual stages of each rank; more than 1 for interleaved_1f1b only.
  int chunks = 1;
  int micro_batches = 1;
};

// The actions of one rank in one optimizer step. Each micro-batch goes forward
// and backward through each chunk once, and backward in each chunk takes
// micro-batches in order. One rank with one chunk goes back and forth, whatever
// the schedule.
//   gpipe             all forward, then all backward (Huang et al.,
//                     arXiv:1811.06965, section 2.3)
//   1f1b              Narayanan et al., arXiv:2104.04473, section 2.2.1
//   interleaved_1f1b  the same, section 2.2.2; any number of micro-batches
//   zero_bubble       ZB-H1: Qi et al., arXiv:2401.10241, section 2.2
std::vector<PipelineAction> MakePipelineSchedule(v1::PipelineSchedule kind,
                                                 const PipelineShape& shape);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MODEL_PIPELINE_SCHEDULE_H_
