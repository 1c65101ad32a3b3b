#include "kernels/cpu/parallel_for.h"

#include <xmmintrin.h>

#ifdef LOCKSTEP_STD_THREADS
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

extern "C" void omp_set_num_threads(int) noexcept;
#else
#include <omp.h>
#endif

namespace lockstep::cpu {
namespace {

// MXCSR bits: flush to zero, denormals are zero. Saturated logits otherwise
// make a step several times slower (docs: subnormal operands trap to
// microcode).
constexpr unsigned kFlushToZero = 0x8040;

void FlushToZero() {
  const unsigned state = _mm_getcsr();
  if ((state & kFlushToZero) != kFlushToZero) _mm_setcsr(state | kFlushToZero);
}

// Threads that this thread's pool was last set up for; OpenMP keeps a pool and
// a thread count per entering thread.
thread_local int entered_threads = 0;

}  // namespace

void ComputePool::Enter() {
  FlushToZero();
  if (entered_threads == threads_) return;
#ifdef LOCKSTEP_STD_THREADS
  // oneDNN keeps to the calling thread: ThreadSanitizer can't see that OpenMP's
  // threads synchronise.
  omp_set_num_threads(1);
#else
  // oneDNN's parallel regions run on these same threads.
  omp_set_num_threads(threads_);
#pragma omp parallel num_threads(threads_)
  FlushToZero();
#endif
  entered_threads = threads_;
}

#ifndef LOCKSTEP_STD_THREADS

struct ComputePool::StdThreads {};

ComputePool::ComputePool(int threads) : threads_(threads) { Enter(); }
ComputePool::~ComputePool() = default;

void ComputePool::Run(int parts, absl::FunctionRef<void(int)> body) {
  Enter();
#pragma omp parallel num_threads(parts)
  {
    FlushToZero();
    // A team may be smaller than asked for.
    const int team = omp_get_num_threads();
    for (int part = omp_get_thread_num(); part < parts; part += team) {
      body(part);
    }
  }
}

#else

struct ComputePool::StdThreads {
  std::mutex mutex;
  std::condition_variable wake, done;
  const absl::FunctionRef<void(int)>* body = nullptr;
  int parts = 0;
  int running = 0;
  uint64_t round = 0;
  bool stopping = false;
  std::vector<std::thread> threads;

  void Loop(int part) {
    FlushToZero();
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [&] { return stopping || round != seen; });
      if (stopping) return;
      seen = round;
      if (part >= parts) continue;
      const auto* work = body;
      lock.unlock();
      (*work)(part);
      lock.lock();
      if (--running == 0) done.notify_one();
    }
  }
};

ComputePool::ComputePool(int threads)
    : threads_(threads), std_threads_(std::make_unique<StdThreads>()) {
  Enter();
  for (int part = 1; part < threads; ++part) {
    std_threads_->threads.emplace_back(
        [pool = std_threads_.get(), part] { pool->Loop(part); });
  }
}

ComputePool::~ComputePool() {
  {
    std::lock_guard lock(std_threads_->mutex);
    std_threads_->stopping = true;
  }
  std_threads_->wake.notify_all();
  for (std::thread& thread : std_threads_->threads) thread.join();
}

void ComputePool::Run(int parts, absl::FunctionRef<void(int)> body) {
  Enter();
  {
    std::lock_guard lock(std_threads_->mutex);
    std_threads_->body = &body;
    std_threads_->parts = parts;
    std_threads_->running = parts - 1;
    ++std_threads_->round;
  }
  std_threads_->wake.notify_all();
  body(0);
  std::unique_lock lock(std_threads_->mutex);
  std_threads_->done.wait(lock, [&] { return std_threads_->running == 0; });
}

#endif

}  // namespace lockstep::cpu
