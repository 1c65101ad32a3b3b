#include "cli/interrupt_handler.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "common/log.h"

namespace lockstep {
namespace {

// The write end of the handler's pipe; -1 while there is none. A signal handler
// can reach nothing but globals.
std::atomic<int> interrupt_pipe = -1;
static_assert(std::atomic<int>::is_always_lock_free);

void OnSignal(int) {
  const int saved = errno;
  const char byte = 'i';
  // A full pipe holds interrupts enough.
  [[maybe_unused]] const ssize_t written =
      write(interrupt_pipe.load(), &byte, 1);
  errno = saved;
}

constexpr char kQuit = 'q';

}  // namespace

InterruptHandler::InterruptHandler(Callback callback)
    : callback_(std::move(callback)) {
  CHECK(pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) == 0) << "no pipe for signals";
  CHECK(interrupt_pipe.exchange(pipe_[1]) == -1) << "two interrupt handlers";
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // Our parent's wish: nohup, or a shell's background job.
    if (before_[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
  thread_ = std::thread([this] { Loop(); });
}

InterruptHandler::~InterruptHandler() {
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &before_[i], nullptr);
  }
  // A full pipe wakes the loop as well; it reads this byte in the end.
  while (write(pipe_[1], &kQuit, 1) != 1) std::this_thread::yield();
  thread_.join();
  interrupt_pipe = -1;
  close(pipe_[0]);
  close(pipe_[1]);
}

void InterruptHandler::Loop() {
  int count = 0;
  absl::Duration patience = absl::InfiniteDuration();
  while (true) {
    pollfd wanted = {.fd = pipe_[0], .events = POLLIN, .revents = 0};
    const int timeout =
        patience == absl::InfiniteDuration()
            ? -1
            : static_cast<int>(absl::ToInt64Milliseconds(patience));
    const int ready = poll(&wanted, 1, timeout);
    if (ready < 0) continue;  // EINTR.
    char byte = 'i';
    if (ready > 0 && read(pipe_[0], &byte, 1) != 1) continue;
    if (byte == kQuit) return;
    patience = callback_(++count);
  }
}

}  // namespace lockstep
