// A PeerLink over Gloo's TCP transport: its device thread moves the messages.
#ifndef LOCKSTEP_WORKER_DIST_GLOO_PEER_LINK_H_
#define LOCKSTEP_WORKER_DIST_GLOO_PEER_LINK_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/dist/gloo_link.h"
#include "worker/dist/peer_link.h"

namespace lockstep {

// Returns when this rank is connected to all others. `timeout` bounds each
// wait, from when it starts. Errors: as GlooLink::Connect's.
absl::StatusOr<std::unique_ptr<PeerLink>> MakeGlooPeerLink(
    const GlooLinkOptions& options, absl::Duration timeout);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_GLOO_PEER_LINK_H_
