#include "worker/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep {
namespace {

// Share of the way from `begin` to `end`, within [0, 1].
double ShareDone(int64_t step, int64_t begin, int64_t end) {
  if (end <= begin) return 1.0;
  const double share =
      static_cast<double>(step - begin) / static_cast<double>(end - begin);
  return std::clamp(share, 0.0, 1.0);
}

}  // namespace

double LearningRateAt(const ScheduleSpec& schedule, double peak, int64_t step,
                      int64_t steps) {
  const int64_t warmup = schedule.warmup_steps;
  if (warmup > 0 && step <= warmup) {
    return peak * static_cast<double>(step) / static_cast<double>(warmup);
  }
  // One step is too short a way to go down.
  if (steps == 1) return peak;
  // What is lost of the way from peak to the minimum.
  double decayed = 0.0;
  switch (schedule.name) {
    case v1::SCHEDULE_NAME_LINEAR:
      decayed = ShareDone(step, std::max<int64_t>(warmup, 1), steps);
      break;
    case v1::SCHEDULE_NAME_COSINE:
      decayed =
          0.5 -
          0.5 * std::cos(std::numbers::pi *
                         ShareDone(step, std::max<int64_t>(warmup, 1), steps));
      break;
    case v1::SCHEDULE_NAME_WSD: {
      const int64_t decay =
          schedule.decay_steps.value_or(std::max<int64_t>(1, steps / 10));
      if (step > steps - decay) {
        decayed = ShareDone(step, std::max(steps - decay, warmup), steps);
      }
      break;
    }
    case v1::SCHEDULE_NAME_CONSTANT:
    case v1::SCHEDULE_NAME_UNSPECIFIED:
    case v1::ScheduleName_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::ScheduleName_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return peak * (1.0 - decayed * (1.0 - schedule.minimum_ratio));
}

}  // namespace lockstep
