// The command line of lockstep-worker.
#ifndef LOCKSTEP_WORKER_WORKER_FLAGS_H_
#define LOCKSTEP_WORKER_WORKER_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/address.h"
#include "common/log.h"

namespace lockstep {

struct WorkerFlags {
  std::vector<Address> coordinators;
  std::string devices = "auto";
  std::string job_root;   // absolute
  std::string data_root;  // absolute
  // Absent: the host's name.
  std::optional<std::string> name;
  std::optional<uint64_t> memory_per_device_bytes;
  std::optional<int64_t> threads;
  std::optional<std::string> advertise;
  std::optional<std::string> data_interface;
  std::optional<Address> metrics;
  LogFormat log_format = LogFormat::kText;
};

// Text for stdout: of --help or --version.
struct FlagsText {
  std::string text;
};

// INVALID_ARGUMENT with one sentence: an unknown flag, a malformed value, or an
// address off this host without --insecure. UNIMPLEMENTED: TLS.
absl::StatusOr<std::variant<WorkerFlags, FlagsText>> ParseWorkerFlags(
    int argc, const char* const* argv);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_WORKER_FLAGS_H_
