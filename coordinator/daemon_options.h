// What lockstep-coordinator is told on its command line, checked.
#ifndef LOCKSTEP_COORDINATOR_DAEMON_OPTIONS_H_
#define LOCKSTEP_COORDINATOR_DAEMON_OPTIONS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/address.h"
#include "common/log.h"

namespace lockstep {

// Flags as they were given; empty is absent.
struct DaemonFlags {
  std::string listen = "127.0.0.1:7700";
  std::string http;
  std::string store;
  std::string job_root;
  std::string config;
  std::string metrics;
  std::string log_format = "text";
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
  std::string token_file;
  bool insecure = false;
};

struct DaemonOptions {
  Address listen;
  // File of the SQLite store.
  std::string store_path;
  // Absolute.
  std::string job_root;
  std::optional<Address> metrics;
  LogFormat log_format = LogFormat::kText;
};

// INVALID_ARGUMENT names the flag, what it is and what it must be.
// UNIMPLEMENTED: a flag whose feature is not built yet.
absl::StatusOr<DaemonOptions> CheckFlags(const DaemonFlags& flags);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_DAEMON_OPTIONS_H_
