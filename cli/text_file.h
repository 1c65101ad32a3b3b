// Whole small files.
#ifndef LOCKSTEP_CLI_TEXT_FILE_H_
#define LOCKSTEP_CLI_TEXT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

// The file's bytes. NOT_FOUND, PERMISSION_DENIED, ... by errno;
// INVALID_ARGUMENT for what is no file or larger than `most_bytes`.
absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         size_t most_bytes);

// Replaces the file in one go, mode 0600: readers see the old text or the new.
absl::Status ReplaceTextFile(const std::string& path, const std::string& text);

// Makes the folder and those above it.
absl::Status MakeFolders(const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_TEXT_FILE_H_
