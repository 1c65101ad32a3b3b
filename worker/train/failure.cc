#include "worker/train/failure.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "common/files/file_error.h"

namespace lockstep {
namespace {

constexpr char kCausePayload[] = "lockstep/cause";

// Of a RESOURCE_EXHAUSTED.
v1::Cause ExhaustionCause(const absl::Status& status) {
  switch (WhatIsExhausted(status)) {
    case ExhaustedFiles::kDisk:
      return v1::CAUSE_DISK_FULL;
    case ExhaustedFiles::kOpenFiles:
      return v1::CAUSE_INTERNAL;
    case ExhaustedFiles::kMemory:
    case ExhaustedFiles::kNothing:
      break;
  }
  return v1::CAUSE_OUT_OF_MEMORY;
}

}  // namespace

absl::Status WithCause(absl::Status status, v1::Cause cause) {
  if (!status.ok() && !status.GetPayload(kCausePayload).has_value()) {
    status.SetPayload(kCausePayload,
                      absl::Cord(std::to_string(static_cast<int>(cause))));
  }
  return status;
}

v1::Cause CauseOf(const absl::Status& status) {
  if (const auto payload = status.GetPayload(kCausePayload)) {
    int value = 0;
    if (absl::SimpleAtoi(std::string(*payload), &value) &&
        v1::Cause_IsValid(value)) {
      return static_cast<v1::Cause>(value);
    }
  }
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnimplemented:
      return v1::CAUSE_USER_ERROR;
    case absl::StatusCode::kResourceExhausted:
      return ExhaustionCause(status);
    case absl::StatusCode::kDataLoss:
      return v1::CAUSE_CORRUPT_CHECKPOINT;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kDeadlineExceeded:
      return v1::CAUSE_EXIT;
    default:
      return v1::CAUSE_INTERNAL;
  }
}

bool IsSecondary(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kAborted;
}

}  // namespace lockstep
