// WorkerName: the name under which a worker is known, unique on its host.
#ifndef LOCKSTEP_WORKER_AGENT_WORKER_NAME_H_
#define LOCKSTEP_WORKER_AGENT_WORKER_NAME_H_

#include <string>

#include "absl/status/statusor.h"
#include "worker/agent/file_descriptor.h"

namespace lockstep {

struct ClaimedName {
  std::string name;
  // Holds the name while it is open; the kernel frees it when the process ends.
  FileDescriptor claim;
};

// `base`, or base-2, base-3 ... where other live workers of this host have
// claimed the earlier ones. RESOURCE_EXHAUSTED after 1000.
absl::StatusOr<ClaimedName> ClaimWorkerName(const std::string& base);

// The host's name, without domain; "worker" if it has none.
std::string HostName();

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_WORKER_NAME_H_
