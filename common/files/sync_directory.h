// Makes the names in a directory durable.
#ifndef LOCKSTEP_COMMON_FILES_SYNC_DIRECTORY_H_
#define LOCKSTEP_COMMON_FILES_SYNC_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"

namespace lockstep {

// fsync of the directory itself: call it after files in it were made, renamed
// or removed. Errors as of FileError (common/files/file_error.h).
absl::Status SyncDirectory(const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FILES_SYNC_DIRECTORY_H_
