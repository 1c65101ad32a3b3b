// FakeJobStore: a JobStore that keeps nothing and answers when the test says
// so.
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_TESTS_UNIT_COORDINATOR_FAKE_JOB_STORE_H_
#define LOCKSTEP_TESTS_UNIT_COORDINATOR_FAKE_JOB_STORE_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/store/job_store.h"

namespace lockstep {
namespace testing {

class FakeJobStore : public JobStore {
 public:
  absl::StatusOr<StoredState> Load() override { return StoredState(); }
  void Enqueue(StoreChange) override {}
  void Write(StoreChange, std::function<void(absl::Status)> done) override {
    {
      absl::MutexLock lock(&mutex_);
      if (holds_) {
        held_ = std::move(done);
        return;
      }
    }
    done(absl::OkStatus());
  }
  void WhenStored(std::function<void()> done) override { done(); }
  absl::Status WaitUntilStored(absl::Duration) override { return trouble; }
  absl::StatusOr<std::vector<v1::Event>> Events(const std::string&,
                                                int64_t) override {
    return std::vector<v1::Event>();
  }
  absl::Status health() const override { return absl::OkStatus(); }
  std::string description() const override { return "held"; }

  // What WaitUntilStored answers; set it before threads ask.
  absl::Status trouble;

  // Writes wait for Answer from now on.
  void Hold() {
    absl::MutexLock lock(&mutex_);
    holds_ = true;
  }
  // Waits for a Write.
  bool AwaitWrite() {
    absl::MutexLock lock(&mutex_);
    const auto written = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return held_ != nullptr;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&written),
                                   absl::Seconds(30));
  }
  void Answer() {
    std::function<void(absl::Status)> done;
    {
      absl::MutexLock lock(&mutex_);
      holds_ = false;
      done = std::exchange(held_, nullptr);
    }
    if (done) done(absl::OkStatus());
  }

 private:
  absl::Mutex mutex_;
  bool holds_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void(absl::Status)> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_COORDINATOR_FAKE_JOB_STORE_H_
