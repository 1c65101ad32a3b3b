// CollectiveRing: the last collectives that a rank launched, in memory that
// another process may share: which group, the how-manieth of that group, what,
// how many bytes, how far. When a gang hangs or fails, the rings of its ranks
// tell where they part.
//
// Lives in a buffer handed in (ordinary or shared memory); it holds no
// pointers. Records are written and read through atomics: a reader in another
// process sees each record whole or not at all, even while it is overwritten.
//
// Threads: Begin from one thread at a time; SetState and Snapshot from any.
#ifndef LOCKSTEP_WORKER_DIST_COLLECTIVE_RING_H_
#define LOCKSTEP_WORKER_DIST_COLLECTIVE_RING_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep {

enum class CollectiveKind : uint32_t {
  kAllReduce,
  kReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kBroadcast,
  kExchange,
  kBarrier,
};
// "all-reduce", ...
const char* Name(CollectiveKind kind);

enum class CollectiveState : uint32_t { kQueued, kRunning, kDone, kFailed };
const char* Name(CollectiveState state);

struct CollectiveRecord {
  // Launch number within the process, from 1.
  uint64_t number = 0;
  // Name of the group; cut at kCollectiveGroupBytes.
  std::string group;
  CollectiveKind kind = CollectiveKind::kBarrier;
  CollectiveState state = CollectiveState::kQueued;
  // Launch number within the group, from 1; equal on all its ranks. Exchanges,
  // which not every rank joins, are numbered apart.
  uint64_t sequence = 0;
  // Bytes of this rank's tensor (of its inputs, where there are several).
  uint64_t bytes = 0;

  // "all-reduce 17 of group dp (4096 bytes), running".
  std::string ToString() const;
};

inline constexpr int kCollectiveGroupBytes = 24;

class CollectiveRing {
 public:
  static constexpr int kCapacity = 256;
  // Size and alignment of the buffer.
  static int64_t BufferBytes();
  static constexpr int64_t kBufferAlignment = 64;

  // Lays an empty ring into `buffer`, which must outlive it.
  static std::unique_ptr<CollectiveRing> Create(void* buffer);
  // A ring that another process fills. FAILED_PRECONDITION if there is none of
  // this version in `buffer`.
  static absl::StatusOr<std::unique_ptr<CollectiveRing>> Attach(void* buffer);

  // Adds a queued record over the oldest one; returns its number.
  uint64_t Begin(std::string_view group, CollectiveKind kind, uint64_t sequence,
                 uint64_t bytes);
  // Does nothing once the record was overwritten.
  void SetState(uint64_t number, CollectiveState state);
  // What is held, oldest first.
  std::vector<CollectiveRecord> Snapshot() const;

 private:
  struct Layout;
  explicit CollectiveRing(Layout* layout) : layout_(layout) {}

  Layout* const layout_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_COLLECTIVE_RING_H_
