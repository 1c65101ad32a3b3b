// CommunicationThread: the one thread of a process that runs the collectives of
// all its groups, in the order in which they were launched, while the compute
// thread goes on. One order for all groups is what keeps ranks that launch
// alike from waiting for each other in a circle.
//
// It flushes subnormal numbers to zero, as the compute threads do.
// Threads: Launch may be called from any thread.
#ifndef LOCKSTEP_WORKER_DIST_COMMUNICATION_THREAD_H_
#define LOCKSTEP_WORKER_DIST_COMMUNICATION_THREAD_H_

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace lockstep {

class CommunicationThread {
 public:
  CommunicationThread();
  // Runs what was launched, then ends.
  ~CommunicationThread();
  CommunicationThread(const CommunicationThread&) = delete;
  CommunicationThread& operator=(const CommunicationThread&) = delete;

  // Queues `collective` and returns at once.
  void Launch(std::function<void()> collective);

 private:
  void Run();
  bool Ready() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return ending_ || !queue_.empty();
  }

  absl::Mutex mutex_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_COMMUNICATION_THREAD_H_
