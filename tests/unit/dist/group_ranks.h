// RunGroup: one process group per rank, each in its own thread, for tests of
// what groups do.
#ifndef LOCKSTEP_TESTS_UNIT_DIST_GROUP_RANKS_H_
#define LOCKSTEP_TESTS_UNIT_DIST_GROUP_RANKS_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/status_macros.h"
#include "tests/testing/in_memory_store.h"
#include "tests/testing/spawn_ranks.h"
#include "tests/testing/test_allocator.h"
#include "worker/dist/gloo_group_factory.h"
#include "worker/dist/local_process_group.h"

namespace lockstep {
namespace testing {

// kGloo: messages alone; kShared: shared memory too.
enum class GroupBackend { kGloo, kShared, kLocal };

struct RankGroup {
  // Null for a local group.
  std::unique_ptr<GlooGroupFactory> factory;
  std::unique_ptr<ProcessGroup> group;
};

inline absl::StatusOr<RankGroup> MakeRankGroup(
    GroupBackend backend, const GlooGroupFactoryOptions& options, int rank,
    int size) {
  RankGroup made;
  if (backend == GroupBackend::kLocal) {
    made.group = std::make_unique<LocalProcessGroup>("test");
    return made;
  }
  GlooGroupFactoryOptions chosen = options;
  chosen.shared_memory = backend == GroupBackend::kShared
                             ? SharedMemory::kWhereOneHost
                             : SharedMemory::kNever;
  ASSIGN_OR_RETURN(made.factory, GlooGroupFactory::Create(chosen));
  ASSIGN_OR_RETURN(made.group,
                   made.factory->Make({"test", rank, size, "test"}));
  return made;
}

struct GroupRun {
  GroupBackend backend = GroupBackend::kGloo;
  int size = 1;
  absl::Duration connect_timeout = absl::Seconds(60);
  absl::Duration collective_timeout = absl::Seconds(60);
  CollectiveRing* ring = nullptr;
  int64_t scratch_limit_bytes = 0;
};

// Each rank's status, once all are done.
inline std::vector<absl::Status> RunGroupCollect(
    const GroupRun& run,
    const std::function<absl::Status(ProcessGroup&)>& function) {
  InMemoryStore store;
  return SpawnRanksCollect(run.size, [&](int rank) -> absl::Status {
    TestAllocator allocator(run.scratch_limit_bytes);
    GlooGroupFactoryOptions options;
    options.store = &store;
    options.allocator = &allocator;
    options.connect_timeout = run.connect_timeout;
    options.collective_timeout = run.collective_timeout;
    options.ring = rank == 0 ? run.ring : nullptr;
    ASSIGN_OR_RETURN(const RankGroup made,
                     MakeRankGroup(run.backend, options, rank, run.size));
    return function(*made.group);
  });
}

// OK, or the first failed rank's status.
inline absl::Status RunGroup(
    const GroupRun& run,
    const std::function<absl::Status(ProcessGroup&)>& function) {
  for (const absl::Status& status : RunGroupCollect(run, function)) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_DIST_GROUP_RANKS_H_
