// lockstep-worker: reads the flags, starts the Worker, waits for SIGTERM.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/ids.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "worker/agent/device_inventory.h"
#include "worker/agent/local_address.h"
#include "worker/agent/rank_launcher.h"
#include "worker/agent/worker_name.h"
#include "worker/worker.h"
#include "worker/worker_flags.h"

namespace lockstep {
namespace {

// What is seen without reading data: bad usage, no device, a port in use.
constexpr int kExitUsage = 2;
constexpr int kIncarnationCharacters = 16;

// SIGTERM and SIGINT, blocked in all threads from here on.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A peer that is gone is an error of the write, not of the process.
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

absl::StatusOr<Worker::Options> WorkerOptions(const WorkerFlags& flags,
                                              const std::string& name) {
  Worker::Options options;
  options.coordinators = flags.coordinators;
  options.name = name;
  options.incarnation = RandomBase32(kIncarnationCharacters);
  ASSIGN_OR_RETURN(options.inventory,
                   TakeInventory(flags.devices, flags.memory_per_device_bytes));
  ASSIGN_OR_RETURN(options.rank_program, FindRankProgram());
  options.threads = flags.threads;
  options.job_root = flags.job_root;
  options.data_root = flags.data_root;
  options.address = flags.advertise.has_value()
                        ? *flags.advertise
                        : LocalAddressTowards(flags.coordinators[0]);
  options.data_address = flags.data_interface.value_or(options.address);
  options.metrics = flags.metrics;
  options.clock = &RealClock();
  return options;
}

// One line for a person, without the status code's name.
int Refuse(const absl::Status& status) {
  std::cerr << "lockstep-worker: " << status.message() << "\n";
  return kExitUsage;
}

int Main(int argc, char** argv) {
  auto parsed = ParseWorkerFlags(argc, argv);
  if (!parsed.ok()) return Refuse(parsed.status());
  if (const FlagsText* text = std::get_if<FlagsText>(&*parsed)) {
    std::cout << text->text;
    return EXIT_SUCCESS;
  }
  const WorkerFlags& flags = std::get<WorkerFlags>(*parsed);
  SetLogFormat(flags.log_format);
  const sigset_t stop_signals = BlockStopSignals();

  // Held to the end: the name is this process's.
  ClaimedName claimed;
  if (flags.name.has_value()) {
    claimed.name = *flags.name;
  } else {
    auto claim = ClaimWorkerName(HostName());
    if (!claim.ok()) return Refuse(claim.status());
    claimed = *std::move(claim);
  }
  SetLogContext("lockstep-worker", absl::StrCat("worker=", claimed.name));

  auto options = WorkerOptions(flags, claimed.name);
  if (!options.ok()) return Refuse(options.status());
  const size_t devices = options->inventory.devices.size();
  const int64_t cores = options->inventory.cores;
  auto worker = Worker::Start(*std::move(options));
  if (!worker.ok()) return Refuse(worker.status());
  LOG(INFO) << "worker " << claimed.name << " offers " << devices
            << (devices == 1 ? " device, " : " devices, ") << cores
            << (cores == 1 ? " core" : " cores");
  if (const auto metrics = (*worker)->metrics_address()) {
    // A bare line, as the coordinator prints it; one write, so that no log line
    // gets in between.
    std::cerr << absl::StrCat("metrics listening on ", metrics->ToString(),
                              "\n");
  }

  int signal = 0;
  sigwait(&stop_signals, &signal);
  const absl::Status ended =
      (*worker)->ShutDown(signal == SIGTERM ? "SIGTERM" : "SIGINT");
  if (!ended.ok()) {
    // The kernel ends what is left as soon as it can (PR_SET_PDEATHSIG).
    LOG(ERROR) << ended.message();
    _exit(EXIT_SUCCESS);
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::Main(argc, argv); }
