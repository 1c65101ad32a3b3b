// The learning rate over time: a pure function of the step.
#ifndef LOCKSTEP_WORKER_OPTIM_LR_SCHEDULE_H_
#define LOCKSTEP_WORKER_OPTIM_LR_SCHEDULE_H_

#include <cstdint>

#include "common/spec/training_spec.h"

namespace lockstep {

// Rate of step `step` (from 1) of `steps`, with `peak` the highest:
//   warm-up: peak * step / warmup_steps in steps 1 .. warmup_steps, then
//   constant: peak;
//   linear, cosine: from peak down to peak * minimum_ratio at the last step
//     (cosine: Loshchilov and Hutter, arXiv:1608.03983, eq. 5, one cycle);
//   wsd: peak, then linear to peak * minimum_ratio over the last decay_steps
//     (Hu et al., arXiv:2404.06395, section 4.2; default: a tenth of all
//     steps).
// A run of one step after no warm-up is at its peak.
double LearningRateAt(const ScheduleSpec& schedule, double peak, int64_t step,
                      int64_t steps);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_OPTIM_LR_SCHEDULE_H_
