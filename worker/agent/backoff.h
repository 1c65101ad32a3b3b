// Backoff: growing waits between attempts, with jitter so that many workers
// don't come back in one instant. Not thread-safe.
#ifndef LOCKSTEP_WORKER_AGENT_BACKOFF_H_
#define LOCKSTEP_WORKER_AGENT_BACKOFF_H_

#include <algorithm>
#include <random>

#include "absl/time/time.h"

namespace lockstep {

class Backoff {
 public:
  Backoff(absl::Duration first, absl::Duration longest, uint64_t seed)
      : first_(first), longest_(longest), next_(first), random_(seed) {}

  // The next wait: from 0.5 to 1 times first, 2 first, 4 first ... longest.
  absl::Duration Next() {
    const absl::Duration wait = next_;
    next_ = std::min(2 * next_, longest_);
    return wait * std::uniform_real_distribution<double>(0.5, 1.0)(random_);
  }

  // After a success.
  void Reset() { next_ = first_; }

 private:
  const absl::Duration first_;
  const absl::Duration longest_;
  absl::Duration next_;
  std::mt19937_64 random_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_BACKOFF_H_
