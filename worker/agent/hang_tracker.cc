#include "worker/agent/hang_tracker.h"

#include <algorithm>
#include <vector>

namespace lockstep {
namespace {

constexpr size_t kStepTimesKept = 31;
// The first steps are slow (pages, code generation): one alone is no median.
constexpr size_t kStepTimesNeeded = 3;
constexpr int kMedianFactor = 5;

}  // namespace

HangTracker::HangTracker(absl::Duration start, absl::Duration hang_timeout)
    : hang_timeout_(hang_timeout), last_(start) {}

void HangTracker::Saw(absl::Duration now, int64_t step) {
  last_ = now;
  if (step <= step_) return;
  if (step_seen_.has_value()) {
    // Reports may skip steps.
    step_times_.push_back((now - *step_seen_) / (step - step_));
    if (step_times_.size() > kStepTimesKept) step_times_.pop_front();
  }
  step_ = step;
  step_seen_ = now;
}

std::optional<absl::Duration> HangTracker::MedianStep() const {
  if (step_times_.size() < kStepTimesNeeded) return std::nullopt;
  std::vector<absl::Duration> times(step_times_.begin(), step_times_.end());
  const auto middle = times.begin() + static_cast<int64_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

absl::Duration HangTracker::Limit() const {
  const std::optional<absl::Duration> median = MedianStep();
  if (!median.has_value()) {
    return std::max(hang_timeout_, kHangTimeoutBeforeMedian);
  }
  return std::max(hang_timeout_, kMedianFactor * *median);
}

}  // namespace lockstep
