// SharedMemoryChannel: memory that all ranks of a group on one host map, and
// the rounds by which they take turns in it.
//
// Each rank has two slots. In a round it fills one, says so (Publish), waits
// until all others have (Await), and reads theirs; the next round uses the
// other slots, so nobody waits for readers: who publishes a round has read the
// one before. The memory has no name: nothing is left behind however ranks end.
//
// It lies outside the device's counted memory: 1 MiB a rank and group.
// Threads: one at a time; Fail may be called from any thread.
// Errors: what Fail was given, UNAVAILABLE on the other ranks and when a rank's
// process has ended, DEADLINE_EXCEEDED, FAILED_PRECONDITION when ranks
// do different things.
#ifndef LOCKSTEP_WORKER_DIST_SHARED_MEMORY_CHANNEL_H_
#define LOCKSTEP_WORKER_DIST_SHARED_MEMORY_CHANNEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/dist/store.h"

namespace lockstep {

struct SharedMemoryOptions {
  // For messages.
  std::string group;
  int rank = 0;
  int size = 1;
  // Where ranks find each other; keys start with `key_prefix`.
  Store* store = nullptr;
  std::string key_prefix;
  absl::Duration connect_timeout = absl::Minutes(2);
};

class SharedMemoryChannel {
 public:
  static constexpr int64_t kSlotBytes = int64_t{512} << 10;

  // Null, on all ranks alike, where they aren't all on one host or can't map
  // one memory. Blocks until all have come; else errors as GlooLink::Connect's.
  static absl::StatusOr<std::unique_ptr<SharedMemoryChannel>> Connect(
      const SharedMemoryOptions& options);
  virtual ~SharedMemoryChannel() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Of the round that is being filled or read.
  virtual char* slot(int rank) = 0;
  // Begins a collective; `signature` is the same on ranks that do the same.
  virtual void Begin(uint64_t signature) = 0;
  // This rank's slot is full (or has nothing for anyone).
  virtual void Publish() = 0;
  // Waits until all slots of the round are.
  virtual absl::Status Await(absl::Time deadline) = 0;
  // This rank has read them.
  virtual void Next() = 0;
  // Ends all waits, here and on the other ranks.
  virtual void Fail(const absl::Status& status) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DIST_SHARED_MEMORY_CHANNEL_H_
