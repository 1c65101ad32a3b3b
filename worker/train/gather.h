// Small things of every rank, on every rank: over the data plane, so that
// nothing depends on the coordinator while a job trains.
#ifndef LOCKSTEP_WORKER_TRAIN_GATHER_H_
#define LOCKSTEP_WORKER_TRAIN_GATHER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/dist/process_group.h"

namespace lockstep {

// Replaces `values` by their sums over the group's ranks, added in rank order
// in fp64: exact and equal on all ranks. All ranks pass as many.
absl::Status SumOverRanks(ProcessGroup& group, absl::Span<double> values);

// Every rank's bytes, in rank order.
absl::StatusOr<std::vector<std::string>> GatherBytes(ProcessGroup& group,
                                                     const std::string& bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_GATHER_H_
