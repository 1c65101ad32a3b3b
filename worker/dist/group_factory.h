// GroupFactory: makes the process groups of one backend. Chosen once per rank;
// the mesh asks it for every group of more than one rank.
#ifndef LOCKSTEP_WORKER_DIST_GROUP_FACTORY_H_
#define LOCKSTEP_WORKER_DIST_GROUP_FACTORY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/dist/peer_link.h"
#include "worker/dist/process_group.h"

namespace lockstep {

struct GroupSpec {
  // "world", "dp", ...
  std::string name;
  // This rank within the group.
  int rank = 0;
  int size = 1;
  // Names the group among all groups of the gang.
  std::string key_prefix;
};

class GroupFactory {
 public:
  virtual ~GroupFactory() = default;
  // Blocks until all ranks of the group are there, at most for a deadline of
  // the factory's own (DEADLINE_EXCEEDED names a rank that didn't come).
  virtual absl::StatusOr<std::unique_ptr<ProcessGroup>> Make(
      const GroupSpec& spec) = 0;
  // The same for messages between any two of the group's ranks.
  virtual absl::StatusOr<std::unique_ptr<PeerLink>> MakePeerLink(
      const GroupSpec& spec) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_GROUP_FACTORY_H_
