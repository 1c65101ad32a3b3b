// Why a rank fails: a cause beside the status. The cause decides about restarts
// and is what `describe` shows; nothing is decided by a message's text.
#ifndef LOCKSTEP_WORKER_TRAIN_FAILURE_H_
#define LOCKSTEP_WORKER_TRAIN_FAILURE_H_

#include "absl/status/status.h"
#include "lockstep/v1/job_service.pb.h"

namespace lockstep {

// `status` with `cause` attached; OK stays OK. An earlier cause is kept.
absl::Status WithCause(absl::Status status, v1::Cause cause);
// The attached cause, else the usual one for the code (docs/errors.md); of a
// RESOURCE_EXHAUSTED that FileError made, for what ran out.
v1::Cause CauseOf(const absl::Status& status);
// Whether the status only says that another rank is gone: never the first
// cause of a gang's end.
bool IsSecondary(const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_FAILURE_H_
