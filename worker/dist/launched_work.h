// The two kinds of Work on a CPU: done already, and done later by the
// communication thread.
#ifndef LOCKSTEP_WORKER_DIST_LAUNCHED_WORK_H_
#define LOCKSTEP_WORKER_DIST_LAUNCHED_WORK_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "worker/dist/work.h"

namespace lockstep {

// Work that was over, well or badly, when its call returned.
class FinishedWork : public Work {
 public:
  explicit FinishedWork(absl::Status status) : status_(std::move(status)) {}
  absl::Status Wait() override { return status_; }

 private:
  const absl::Status status_;
};

// What one launched collective leaves for its waiter. Shared by the Work and
// the communication thread, as either may be the last to need it.
class Completion {
 public:
  // Once.
  void Finish(absl::Status status) {
    status_ = std::move(status);
    done_.Notify();
  }
  // Takes no deadline: the collective itself ends at its own.
  absl::Status Wait() {
    done_.WaitForNotification();
    return status_;
  }

 private:
  absl::Notification done_;
  // Written before done_, read after it.
  absl::Status status_;
};

class LaunchedWork : public Work {
 public:
  explicit LaunchedWork(std::shared_ptr<Completion> completion)
      : completion_(std::move(completion)) {}
  absl::Status Wait() override { return completion_->Wait(); }

 private:
  const std::shared_ptr<Completion> completion_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_LAUNCHED_WORK_H_
