// A gang's data: rank 0 makes the token cache, the others wait for it and open
// the same one.
#ifndef LOCKSTEP_WORKER_TRAIN_GANG_DATA_H_
#define LOCKSTEP_WORKER_TRAIN_GANG_DATA_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/v1/worker_service.pb.h"
#include "worker/data/prepared_data.h"
#include "worker/dist/store.h"
#include "worker/train/rank_context.h"

namespace lockstep {

// All ranks call it. A rank that sees other data than rank 0 (the files differ
// between hosts) is FAILED_PRECONDITION and names its worker.
absl::StatusOr<std::unique_ptr<PreparedData>> OpenGangData(
    const RankContext& context, const v1::RankAssignment& assignment,
    Store& store);

// The options of worker/data for this rank, with progress going to its
// reporter.
DataOptions DataOptionsOf(const RankContext& context,
                          const v1::RankAssignment& assignment);

// `status` of work on data. Of damaged inputs and token caches the cause is
// user_error: DATA_LOSS is a checkpoint's elsewhere.
absl::Status DataCause(absl::Status status);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_GANG_DATA_H_
