// ControlQueue: what the worker tells one rank, on its way to the rank's
// session. Push never waits, whatever the rank does.
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_WORKER_AGENT_CONTROL_QUEUE_H_
#define LOCKSTEP_WORKER_AGENT_CONTROL_QUEUE_H_

#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "lockstep/v1/worker_service.pb.h"

namespace lockstep {

class ControlQueue {
 public:
  void Push(v1::RankControl control) {
    absl::MutexLock lock(&mutex_);
    if (!closed_) queue_.push_back(std::move(control));
  }

  // Waits for the next message; absent after Close. No deadline: the session
  // that pops also closes.
  std::optional<v1::RankControl> Pop() {
    absl::MutexLock lock(&mutex_);
    const auto ready = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return closed_ || !queue_.empty();
    };
    mutex_.Await(absl::Condition(&ready));
    if (closed_) return std::nullopt;
    v1::RankControl control = std::move(queue_.front());
    queue_.pop_front();
    return control;
  }

  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

 private:
  absl::Mutex mutex_;
  std::deque<v1::RankControl> queue_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_CONTROL_QUEUE_H_
