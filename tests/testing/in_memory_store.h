// InMemoryStore: the rendezvous store of ranks that are threads of one test.
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_TESTS_TESTING_IN_MEMORY_STORE_H_
#define LOCKSTEP_TESTS_TESTING_IN_MEMORY_STORE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "worker/dist/store.h"

namespace lockstep {
namespace testing {

class InMemoryStore : public Store {
 public:
  absl::Status Set(const std::string& key, const std::string& value) override {
    absl::MutexLock lock(&mutex_);
    if (!values_.emplace(key, value).second) {
      return absl::AlreadyExistsError(absl::StrCat("key ", key, " is set"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> Get(
      const std::vector<std::string>& keys, absl::Duration timeout) override {
    const absl::Time deadline = absl::Now() + timeout;
    std::vector<std::string> values;
    absl::MutexLock lock(&mutex_);
    for (const std::string& key : keys) {
      const auto present = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return values_.count(key) > 0;
      };
      if (!mutex_.AwaitWithDeadline(absl::Condition(&present), deadline)) {
        return absl::DeadlineExceededError(
            absl::StrCat("key ", key, " is missing"));
      }
      values.push_back(values_.at(key));
    }
    return values;
  }

 private:
  absl::Mutex mutex_;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_IN_MEMORY_STORE_H_
