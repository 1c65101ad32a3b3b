// A process group over Gloo's TCP transport, and through shared memory where
// all its ranks are on one host. Its collectives run on the process's
// communication thread, in launch order, while the caller computes.
#ifndef LOCKSTEP_WORKER_DIST_GLOO_PROCESS_GROUP_H_
#define LOCKSTEP_WORKER_DIST_GLOO_PROCESS_GROUP_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/allocator.h"
#include "worker/dist/collective_ring.h"
#include "worker/dist/communication_thread.h"
#include "worker/dist/gloo_device.h"
#include "worker/dist/gloo_link.h"
#include "worker/dist/process_group.h"
#include "worker/dist/store.h"

namespace lockstep {

// Whether ranks of one host move tensors through memory that they share.
enum class SharedMemory : uint8_t { kWhereOneHost, kNever };

// All pointers must outlive the group, and only `ring` may be null.
struct GlooProcessGroupOptions {
  std::string name;
  int rank = 0;
  int size = 1;
  Store* store = nullptr;
  // Differs from group to group of a gang; equal on the ranks of one.
  std::string key_prefix;
  GlooDevice* device = nullptr;
  CommunicationThread* thread = nullptr;
  // For the collectives' scratch, counted as buffers.
  Allocator* allocator = nullptr;
  CollectiveRing* ring = nullptr;
  SharedMemory shared_memory = SharedMemory::kWhereOneHost;
  absl::Duration connect_timeout = absl::Minutes(2);
  // From when a collective starts to run on this rank. A dead peer is noticed
  // at once: this bounds the wait for one that lives and doesn't come.
  absl::Duration collective_timeout = absl::Minutes(30);
};

// Returns when this rank is connected to all others. Its Abort returns when no
// collective of the group touches a tensor any more. A group that has failed
// stays failed; its status says which collective it was that failed.
// Errors: INVALID_ARGUMENT; DEADLINE_EXCEEDED, naming a rank that didn't come;
// UNAVAILABLE.
absl::StatusOr<std::unique_ptr<ProcessGroup>> MakeGlooProcessGroup(
    const GlooProcessGroupOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_GLOO_PROCESS_GROUP_H_
