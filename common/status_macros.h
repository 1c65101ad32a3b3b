// RETURN_IF_ERROR and ASSIGN_OR_RETURN: hand a failed absl::Status to the
// caller. The Abseil release in use has neither.
#ifndef LOCKSTEP_COMMON_STATUS_MACROS_H_
#define LOCKSTEP_COMMON_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define LOCKSTEP_CONCAT_INNER(a, b) a##b
#define LOCKSTEP_CONCAT(a, b) LOCKSTEP_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expression)                           \
  do {                                                        \
    if (absl::Status status_ = (expression); !status_.ok()) { \
      return status_;                                         \
    }                                                         \
  } while (false)

#define ASSIGN_OR_RETURN(target, expression)                             \
  LOCKSTEP_ASSIGN_OR_RETURN_INNER(LOCKSTEP_CONCAT(status_or_, __LINE__), \
                                  target, expression)

#define LOCKSTEP_ASSIGN_OR_RETURN_INNER(holder, target, expression) \
  auto holder = (expression);                                       \
  if (!holder.ok()) return holder.status();                         \
  target = *std::move(holder)

#endif  // LOCKSTEP_COMMON_STATUS_MACROS_H_
