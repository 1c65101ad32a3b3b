// FileError: an errno as a Status (docs/errors.md), and what it was that ran
// out.
#ifndef LOCKSTEP_COMMON_FILES_FILE_ERROR_H_
#define LOCKSTEP_COMMON_FILES_FILE_ERROR_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace lockstep {

// "can't ACTION PATH: REASON", of `error` (an errno). NOT_FOUND;
// ALREADY_EXISTS; PERMISSION_DENIED; RESOURCE_EXHAUSTED: the disk, the quota,
// the file size limit, the table of open files or the memory is full;
// INVALID_ARGUMENT: `path` is of the wrong kind (a folder, a link that isn't
// followed); DATA_LOSS: the disk can't read or write it; INTERNAL: the rest.
absl::Status FileError(int error, std::string_view action,
                       std::string_view path);

enum class ExhaustedFiles : uint8_t { kNothing, kDisk, kOpenFiles, kMemory };
// What ran out, where `status` is a FileError of RESOURCE_EXHAUSTED.
ExhaustedFiles WhatIsExhausted(const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FILES_FILE_ERROR_H_
