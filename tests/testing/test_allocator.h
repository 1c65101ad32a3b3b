// TestAllocator: an Allocator for tests of what allocates, without a device.
// Counts live bytes and their peaks; fails past its limit.
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_TESTS_TESTING_TEST_ALLOCATOR_H_
#define LOCKSTEP_TESTS_TESTING_TEST_ALLOCATOR_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "kernels/allocator.h"

namespace lockstep {
namespace testing {

class TestAllocator : public Allocator {
 public:
  // 0 is no limit.
  explicit TestAllocator(int64_t limit_bytes = 0) : limit_bytes_(limit_bytes) {}

  absl::StatusOr<Buffer> Allocate(int64_t bytes,
                                  MemoryCategory category) override {
    absl::MutexLock lock(&mutex_);
    if (limit_bytes_ > 0 && use_.total.live_bytes + bytes > limit_bytes_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("test allocator: ", bytes, " bytes wanted, ",
                       use_.total.live_bytes, " held, limit ", limit_bytes_));
    }
    Count(bytes, category);
    const int64_t rounded = (std::max<int64_t>(bytes, 1) + 63) / 64 * 64;
    return Buffer(this, std::aligned_alloc(64, rounded), bytes, category);
  }
  MemoryUse Use() const override {
    absl::MutexLock lock(&mutex_);
    return use_;
  }
  // Makes each peak the live count of now.
  void ResetPeaks() {
    absl::MutexLock lock(&mutex_);
    use_.total.peak_bytes = use_.total.live_bytes;
    for (MemoryCount& count : use_.by_category) {
      count.peak_bytes = count.live_bytes;
    }
  }
  int64_t limit_bytes() const override { return limit_bytes_; }

 private:
  void Free(void* data, int64_t bytes, MemoryCategory category) override {
    std::free(data);
    absl::MutexLock lock(&mutex_);
    Count(-bytes, category);
  }
  void Count(int64_t bytes, MemoryCategory category)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (MemoryCount* count :
         {&use_.total, &use_.by_category[static_cast<size_t>(category)]}) {
      count->live_bytes += bytes;
      count->peak_bytes = std::max(count->peak_bytes, count->live_bytes);
    }
  }

  const int64_t limit_bytes_;
  mutable absl::Mutex mutex_;
  MemoryUse use_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_TEST_ALLOCATOR_H_
