// What this host has for local workers.
#ifndef LOCKSTEP_CLI_HOST_RESOURCES_H_
#define LOCKSTEP_CLI_HOST_RESOURCES_H_

#include <cstdint>
#include <string>

namespace lockstep {

// Cores that this process may run on.
int64_t HostCores();

// Bytes of the host's memory, or of the tightest memory cgroup (v1 or v2) that
// this process is in, where that is less. `root` stands for "/", for tests.
uint64_t HostMemoryBytes(const std::string& root = "/");

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_HOST_RESOURCES_H_
