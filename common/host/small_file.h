// Small files of /proc and /sys, whose size isn't known before they are read.
#ifndef LOCKSTEP_COMMON_HOST_SMALL_FILE_H_
#define LOCKSTEP_COMMON_HOST_SMALL_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace lockstep {

// The first MiB of a file. NOT_FOUND, or UNAVAILABLE with the reason.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_HOST_SMALL_FILE_H_
