// What this host has for workers: the same numbers for the worker that offers
// them and for the command line that starts it.
#ifndef LOCKSTEP_COMMON_HOST_HOST_RESOURCES_H_
#define LOCKSTEP_COMMON_HOST_HOST_RESOURCES_H_

#include <cstdint>
#include <string>

namespace lockstep {

// Cores that this process may use, by affinity and by the CPU quotas of its
// control groups; at least 1. `root` stands before every absolute path; a
// folder in tests, else empty.
int64_t UsableCores(const std::string& root = "");

// Bytes of the host's memory, or of the lowest limit of its control groups
// where that is less.
uint64_t UsableMemoryBytes(const std::string& root = "");

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_HOST_HOST_RESOURCES_H_
