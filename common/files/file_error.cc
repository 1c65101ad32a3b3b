#include "common/files/file_error.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"

namespace lockstep {
namespace {

constexpr char kErrnoPayload[] = "lockstep/errno";

absl::Status ExhaustedError(int error, const std::string& message) {
  absl::Status status = absl::ResourceExhaustedError(message);
  status.SetPayload(kErrnoPayload, absl::Cord(std::to_string(error)));
  return status;
}

}  // namespace

absl::Status FileError(int error, std::string_view action,
                       std::string_view path) {
  std::string message = "can't ";
  message.append(action).append(" ").append(path).append(": ");
  message.append(std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EEXIST:
      return absl::AlreadyExistsError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ExhaustedError(error, message);
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
      return absl::InvalidArgumentError(message);
    case EIO:
      return absl::DataLossError(message);
    default:
      return absl::InternalError(message);
  }
}

ExhaustedFiles WhatIsExhausted(const absl::Status& status) {
  int error = 0;
  const auto payload = status.GetPayload(kErrnoPayload);
  if (!payload.has_value() ||
      !absl::SimpleAtoi(std::string(*payload), &error)) {
    return ExhaustedFiles::kNothing;
  }
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return ExhaustedFiles::kDisk;
    case EMFILE:
    case ENFILE:
      return ExhaustedFiles::kOpenFiles;
    default:
      return ExhaustedFiles::kMemory;
  }
}

}  // namespace lockstep
