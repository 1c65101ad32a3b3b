// ComputePool: the threads that run CPU kernels. It is OpenMP's pool, which
// oneDNN uses too (GNU libgomp), or, built with LOCKSTEP_STD_THREADS, a pool of
// std::thread that ThreadSanitizer understands.
//
//   pool.Ranges(rows, 16, [&](int64_t begin, int64_t end) { ... });
//   pool.Items(heads, [&](int64_t head, int thread) { ... });
//
// A kernel's result must not depend on which thread runs what: each output
// element is written by one call, and sums over rows go in blocks whose bounds
// depend on the problem only.
//
// libgomp reads its waiting policy when the process starts: whoever starts a
// rank that shares its cores sets OMP_WAIT_POLICY=passive in its environment.
//
// Threads: entered by one thread at a time (the compute thread). All threads
// that run work flush subnormal numbers to zero, and stay so.
#ifndef LOCKSTEP_KERNELS_CPU_PARALLEL_FOR_H_
#define LOCKSTEP_KERNELS_CPU_PARALLEL_FOR_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace lockstep::cpu {

class ComputePool {
 public:
  explicit ComputePool(int threads);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  int threads() const { return threads_; }

  // Makes the calling thread fit to run kernels and oneDNN: flush to zero here
  // and in the pool, and OpenMP's number of threads. Cheap when done already.
  void Enter();

  // Calls `body(begin, end)` on ranges that cover [0, count), whose inner
  // bounds are multiples of `granularity`, one range a thread; one call in all
  // where there are at most `granularity` items.
  template <typename Body>
  void Ranges(int64_t count, int64_t granularity, const Body& body) {
    if (count <= 0) return;
    const int64_t blocks = (count + granularity - 1) / granularity;
    const int parts = static_cast<int>(std::min<int64_t>(threads_, blocks));
    if (parts <= 1) {
      Enter();
      body(int64_t{0}, count);
      return;
    }
    Run(parts, [&](int part) {
      const int64_t begin = blocks * part / parts * granularity;
      const int64_t end = blocks * (part + 1) / parts * granularity;
      if (begin < count) body(begin, std::min(end, count));
    });
  }

  // Calls `body(item, thread)` for each item in [0, count); threads take the
  // next item when they are done with one. thread < threads().
  template <typename Body>
  void Items(int64_t count, const Body& body) {
    if (count <= 0) return;
    const int parts = static_cast<int>(std::min<int64_t>(threads_, count));
    if (parts <= 1) {
      Enter();
      for (int64_t item = 0; item < count; ++item) body(item, 0);
      return;
    }
    std::atomic<int64_t> next{0};
    Run(parts, [&](int thread) {
      for (int64_t item = next.fetch_add(1, std::memory_order_relaxed);
           item < count; item = next.fetch_add(1, std::memory_order_relaxed)) {
        body(item, thread);
      }
    });
  }

 private:
  // Calls `body(part)` for each part in [0, parts), each on its own thread, and
  // returns when all are done.
  void Run(int parts, absl::FunctionRef<void(int)> body);

  const int threads_;
  struct StdThreads;
  std::unique_ptr<StdThreads> std_threads_;  // null with OpenMP
};

}  // namespace lockstep::cpu

#endif  // LOCKSTEP_KERNELS_CPU_PARALLEL_FOR_H_
