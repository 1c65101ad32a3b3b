// InterruptHandler: calls back on Ctrl-C (SIGINT), SIGTERM and SIGHUP, on a
// thread of its own, where everything is allowed. One at a time in a process.
// A signal that was ignored when the process began (nohup) stays ignored.
//
//   InterruptHandler interrupts([&](int count) -> absl::Duration {
//     token.Stop();
//     return absl::InfiniteDuration();
//   });
#ifndef LOCKSTEP_CLI_INTERRUPT_HANDLER_H_
#define LOCKSTEP_CLI_INTERRUPT_HANDLER_H_

#include <csignal>
#include <functional>
#include <thread>

#include "absl/time/time.h"

namespace lockstep {

class InterruptHandler {
 public:
  // Gets the number of interrupts so far, from 1; returns the time after which
  // it counts as interrupted again if no further one comes.
  using Callback = std::function<absl::Duration(int count)>;

  explicit InterruptHandler(Callback callback);
  // Gives the signals back and waits for a running callback to end.
  ~InterruptHandler();
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

 private:
  void Loop();

  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

  const Callback callback_;
  // Read by the loop; written by the signal handler and the destructor.
  int pipe_[2] = {-1, -1};
  struct sigaction before_[3] = {};
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_INTERRUPT_HANDLER_H_
