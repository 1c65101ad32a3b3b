// Which devices a gang gets: on as few workers as it takes, so that its ranks
// talk over memory where they can. Pure.
#ifndef LOCKSTEP_COORDINATOR_SCHEDULE_PACK_POLICY_H_
#define LOCKSTEP_COORDINATOR_SCHEDULE_PACK_POLICY_H_

#include <cstdint>
#include <optional>

#include "coordinator/schedule/cluster_view.h"

namespace lockstep {

// `ranks` free devices that each have at least `memory_bytes`; devices of
// unknown memory count as large enough. The worker that fits the gang tightest
// if there is one, else those with the most free devices first; ties by name.
// Ranks of one worker, and of one host, are neighbours. Nothing if there are
// too few.
std::optional<Placement> PackPolicy(const ClusterView& cluster, int64_t ranks,
                                    uint64_t memory_bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_SCHEDULE_PACK_POLICY_H_
