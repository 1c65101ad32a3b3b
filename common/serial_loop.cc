#include "common/serial_loop.h"

namespace lockstep {

std::unique_ptr<SerialLoop> SerialLoop::Start(Clock& clock,
                                              absl::Duration interval,
                                              Closure tick) {
  auto loop = std::unique_ptr<SerialLoop>(
      new SerialLoop(clock, interval, std::move(tick)));
  loop->thread_ = std::thread([raw = loop.get()] { raw->Work(); });
  return loop;
}

SerialLoop::SerialLoop(Clock& clock, absl::Duration interval, Closure tick)
    : clock_(clock), interval_(interval), tick_(std::move(tick)) {}

SerialLoop::~SerialLoop() { Stop(); }

void SerialLoop::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void SerialLoop::Post(Closure closure) { Take(std::move(closure)); }

bool SerialLoop::Take(Closure closure) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return false;
  closures_.push_back(std::move(closure));
  return true;
}

void SerialLoop::Work() {
  std::deque<Closure> batch;
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      const auto wanted = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return stopping_ || !closures_.empty();
      };
      clock_.WaitFor(mutex_, absl::Condition(&wanted), interval_);
      if (stopping_ && closures_.empty()) return;
      batch.swap(closures_);
    }
    for (Closure& closure : batch) closure();
    batch.clear();
    tick_();
  }
}

}  // namespace lockstep
