// A rank that trains nothing: its job's name says what it does.
//   finish     reports three steps and finishes
//   exit       prints a line and exits with code 7
//   crash      dies of SIGSEGV
//   rank0_fails  rank 0 says nan_loss; the others wait
//   wait       reports progress once, then does nothing for ever
//   store      passes a value from rank 0 to the others through the store
//   await_key  waits for a key that the test sets
//   child      leaves a child process in its group behind
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/log.h"
#include "worker/agent/rank_channel.h"

namespace lockstep {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(20);

void ReportProgress(RankChannel& channel, int64_t step) {
  v1::Progress progress;
  progress.set_phase("training");
  progress.set_memory_bytes(12345);
  channel.SetProgress(step, progress);
}

[[noreturn]] void WaitForEver() {
  for (;;) pause();
}

int Finish(RankChannel& channel) {
  const absl::Status status = channel.Finish(kTimeout);
  LOG(INFO) << "finished: " << status;
  return status.ok() ? kRankExitDone : kRankExitFailed;
}

int Train(RankChannel& channel) {
  for (int64_t step = 1; step <= 3; ++step) {
    v1::RankReport report;
    report.mutable_step()->set_step(step);
    report.mutable_step()->set_loss(1.0 / static_cast<double>(step));
    channel.Report(report);
    ReportProgress(channel, step);
  }
  return Finish(channel);
}

int PassThroughStore(RankChannel& channel) {
  if (channel.assignment().rank() == 0) {
    const absl::Status set = channel.store().Set("greeting", "hello");
    CHECK(set.ok()) << set;
    return Finish(channel);
  }
  const auto values = channel.store().Get({"greeting"}, kTimeout);
  CHECK(values.ok()) << values.status();
  CHECK(values->at(0) == "hello") << values->at(0);
  const auto missing = channel.store().Get({"nothing"}, absl::Milliseconds(50));
  LOG(INFO) << "missing: " << missing.status();
  return Finish(channel);
}

int Run(RankChannel& channel) {
  const std::string& what = channel.assignment().spec().name();
  if (what == "finish") return Train(channel);
  if (what == "store") return PassThroughStore(channel);
  if (what == "await_key") {
    const auto values = channel.store().Get({"late"}, kTimeout);
    CHECK(values.ok()) << values.status();
    return Finish(channel);
  }
  if (what == "exit") {
    LOG(ERROR) << "this is the end";
    return 7;
  }
  if (what == "crash") {
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  if (what == "rank0_fails" && channel.assignment().rank() == 0) {
    const absl::Status status = channel.Fail(
        v1::CAUSE_NAN_LOSS, "loss is NaN at step 2", false, kTimeout);
    return status.ok() ? kRankExitFailed : 99;
  }
  if (what == "child") {
    const pid_t child = fork();
    if (child == 0) WaitForEver();
    LOG(INFO) << "child " << child;
    return Finish(channel);
  }
  ReportProgress(channel, 1);
  WaitForEver();
}

int Main() {
  const char* socket_path = std::getenv(kRankSocketVariable);
  const char* token = std::getenv(kRankTokenVariable);
  CHECK(socket_path != nullptr && token != nullptr);
  auto channel = RankChannel::Connect(socket_path, token, kTimeout);
  CHECK(channel.ok()) << channel.status();
  LOG(INFO) << "rank " << (*channel)->assignment().rank() << " threads "
            << std::getenv("OMP_NUM_THREADS");
  return Run(**channel);
}

}  // namespace
}  // namespace lockstep

int main() { return lockstep::Main(); }
