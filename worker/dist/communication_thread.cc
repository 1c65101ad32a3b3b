#include "worker/dist/communication_thread.h"

#include <xmmintrin.h>

#include <utility>

namespace lockstep {
namespace {

// Flush-to-zero and denormals-are-zero of MXCSR.
constexpr unsigned kFlushSubnormals = 0x8040;

}  // namespace

CommunicationThread::CommunicationThread() : thread_([this] { Run(); }) {}

CommunicationThread::~CommunicationThread() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

void CommunicationThread::Launch(std::function<void()> collective) {
  absl::MutexLock lock(&mutex_);
  queue_.push_back(std::move(collective));
}

void CommunicationThread::Run() {
  _mm_setcsr(_mm_getcsr() | kFlushSubnormals);
  while (true) {
    std::function<void()> collective;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &CommunicationThread::Ready));
      if (queue_.empty()) return;
      collective = std::move(queue_.front());
      queue_.pop_front();
    }
    collective();
  }
}

}  // namespace lockstep
