// lockstep-coordinator: see docs/architecture.md.
#include <grpc/support/log.h>
#include <pthread.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "common/log.h"
#include "common/version.h"
#include "coordinator/coordinator.h"
#include "coordinator/daemon_options.h"

namespace lockstep {
namespace {

constexpr int kExitDone = 0;
constexpr int kExitRefused = 2;

int Refuse(const absl::Status& status) {
  std::cerr << "lockstep-coordinator: " << status.message() << std::endl;
  return kExitRefused;
}

// SIGTERM and SIGINT are waited for by the main thread; blocked before other
// threads exist, so that these inherit the mask.
sigset_t BlockEndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A client or worker that is gone shows as a failed write.
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

void LogGrpc(gpr_log_func_args* args) {
  if (args->severity < GPR_LOG_SEVERITY_ERROR) return;
  LOG(WARNING) << "grpc: " << args->message;
}

int Serve(const DaemonOptions& options, const sigset_t& signals) {
  SetLogFormat(options.log_format);
  SetLogContext("lockstep-coordinator", "");
  gpr_set_log_function(LogGrpc);
  Coordinator::Options start;
  start.listen = options.listen;
  start.store_path = options.store_path;
  start.job_root = options.job_root;
  start.metrics = options.metrics;
  auto coordinator = Coordinator::Start(start, RealClock());
  if (!coordinator.ok()) return Refuse(coordinator.status());
  std::cerr << "grpc listening on " << (*coordinator)->address().ToString()
            << std::endl;
  if (const auto metrics = (*coordinator)->metrics_address()) {
    std::cerr << "metrics listening on " << metrics->ToString() << std::endl;
  }
  int signal = 0;
  sigwait(&signals, &signal);
  LOG(INFO) << "ends on signal " << signal << "; ranks train on";
  coordinator->reset();
  return kExitDone;
}

int Main(int argc, char** argv) {
  DaemonFlags flags;
  CLI::App app(
      "The coordinator of a Lockstep cluster: jobs, queue, placement, "
      "rendezvous and history.",
      "lockstep-coordinator");
  app.set_version_flag("--version", std::string(Version()));
  app.add_option("--listen", flags.listen, "HOST:PORT to serve gRPC on")
      ->capture_default_str();
  app.add_option("--http", flags.http, "HOST:PORT of the web page");
  app.add_option("--store", flags.store, "sqlite:DIR/state.db")->required();
  app.add_option("--job-root", flags.job_root,
                 "folder of checkpoints, history and logs, shared with the "
                 "workers")
      ->required();
  app.add_option("--config", flags.config, "file with further settings");
  app.add_option("--metrics", flags.metrics,
                 "HOST:PORT of /metrics, /healthz and /readyz");
  app.add_option("--log-format", flags.log_format, "text or json")
      ->capture_default_str();
  app.add_option("--tls-cert", flags.tls_cert, "certificate");
  app.add_option("--tls-key", flags.tls_key, "private key");
  app.add_option("--tls-ca", flags.tls_ca, "certificate of the authority");
  app.add_option("--token-file", flags.token_file, "tokens of users");
  app.add_flag("--insecure", flags.insecure,
               "serve other hosts without TLS, for all to read and change");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Also --help and --version, which are no errors.
    return app.exit(error) == 0 ? kExitDone : kExitRefused;
  }
  const sigset_t signals = BlockEndSignals();
  const auto options = CheckFlags(flags);
  if (!options.ok()) return Refuse(options.status());
  return Serve(*options, signals);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::Main(argc, argv); }
