// SerialLoop: one thread that runs closures in order and calls a tick in
// between, so that what lives on it needs no lock.
//
//   auto loop = SerialLoop::Start(RealClock(), interval, [&] {
//     state.Tick();
//   });
//   loop->Post([&] { state.OnMessage(message); });
//   int n = loop->Run([&] { return state.count(); });
//   loop->Stop();
//
// What the closures refer to must live until Stop, or the destructor, returns;
// posts after that are dropped, so that the loop itself may outlive them.
//
// Threads: all functions may be called from any thread, except that Run and
// Stop must not be called on the loop's own thread (they would wait for it).
#ifndef LOCKSTEP_COMMON_SERIAL_LOOP_H_
#define LOCKSTEP_COMMON_SERIAL_LOOP_H_

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/log.h"

namespace lockstep {

class SerialLoop {
 public:
  using Closure = std::function<void()>;

  // `tick` is called on the loop's thread, at least every `interval` and after
  // each batch of closures.
  static std::unique_ptr<SerialLoop> Start(Clock& clock,
                                           absl::Duration interval,
                                           Closure tick);
  ~SerialLoop();  // stops
  SerialLoop(const SerialLoop&) = delete;
  SerialLoop& operator=(const SerialLoop&) = delete;

  // Runs what has been posted, then ends the thread. By one thread at a time;
  // again changes nothing.
  void Stop();

  // Dropped once Stop has begun.
  void Post(Closure closure);

  // Runs `function` on the loop and returns what it returns. Waits as long as
  // the closures before it take; those never block. Not after Stop.
  template <typename Function>
  auto Run(Function function) -> decltype(function()) {
    using Result = decltype(function());
    absl::Notification done;
    if constexpr (std::is_void_v<Result>) {
      const bool taken = Take([&] {
        function();
        done.Notify();
      });
      CHECK(taken) << "Run on a loop that has stopped";
      done.WaitForNotification();
    } else {
      std::unique_ptr<Result> result;
      const bool taken = Take([&] {
        result = std::make_unique<Result>(function());
        done.Notify();
      });
      CHECK(taken) << "Run on a loop that has stopped";
      done.WaitForNotification();
      return *std::move(result);
    }
  }

 private:
  SerialLoop(Clock& clock, absl::Duration interval, Closure tick);
  // False: the loop has stopped, and the closure won't run.
  bool Take(Closure closure);
  void Work();

  Clock& clock_;
  const absl::Duration interval_;
  const Closure tick_;
  absl::Mutex mutex_;
  std::deque<Closure> closures_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SERIAL_LOOP_H_
