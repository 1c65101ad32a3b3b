// ArenaAllocator: the memory of a CPU device (see kernels/allocator.h).
//
// One range of addresses is reserved; its pages cost nothing until touched.
// Blocks are cut from free ones, the smallest that fits (best fit, then lowest
// address), else from the end of what was ever used. Freed blocks merge with
// their free neighbours and keep their pages, so that a steady step asks the
// system for nothing; when the arena has to grow although much of it is free
// (changing shapes), the free blocks' pages are handed back first. So what the
// process holds stays near the counted peak.
//
// Under AddressSanitizer each block is an allocation of its own, so that
// overruns are seen.
#ifndef LOCKSTEP_KERNELS_CPU_ARENA_ALLOCATOR_H_
#define LOCKSTEP_KERNELS_CPU_ARENA_ALLOCATOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/allocator.h"

namespace lockstep::cpu {

class ArenaAllocator final : public Allocator {
 public:
  // `limit_bytes` 0 is no limit. RESOURCE_EXHAUSTED where no addresses can be
  // reserved.
  static absl::StatusOr<std::unique_ptr<ArenaAllocator>> Make(
      int64_t limit_bytes);
  ~ArenaAllocator() override;

  absl::StatusOr<Buffer> Allocate(int64_t bytes,
                                  MemoryCategory category) override;
  MemoryUse Use() const override;
  int64_t limit_bytes() const override { return limit_bytes_; }

  // Bytes of the arena that may have pages behind them.
  int64_t held_bytes() const;

 private:
  // A free range of the arena.
  struct FreeBlock {
    int64_t bytes = 0;
    bool touched = false;  // may have pages
  };

  ArenaAllocator(int64_t limit_bytes, char* base, int64_t reserved_bytes)
      : limit_bytes_(limit_bytes),
        base_(base),
        reserved_bytes_(reserved_bytes) {}
  void Free(void* data, int64_t bytes, MemoryCategory category) override;

  // Offset of a block of `bytes`, a multiple of kAlignment; negative if the
  // reserved range is used up.
  int64_t Take(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack(int64_t offset, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void InsertFree(int64_t offset, FreeBlock block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseFree(std::map<int64_t, FreeBlock>::iterator block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hands the pages of all free blocks back to the system.
  void ReleaseFreePages() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant.
  const int64_t limit_bytes_;
  char* const base_;
  const int64_t reserved_bytes_;

  mutable absl::Mutex mutex_;
  MemoryUse use_ ABSL_GUARDED_BY(mutex_);
  // Blocks lie in [0, end_); behind it nothing was touched.
  int64_t end_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t touched_free_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t taken_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, FreeBlock> free_ ABSL_GUARDED_BY(mutex_);  // by offset
  std::set<std::pair<int64_t, int64_t>> free_by_size_
      ABSL_GUARDED_BY(mutex_);  // (bytes, offset)
};

}  // namespace lockstep::cpu

#endif  // LOCKSTEP_KERNELS_CPU_ARENA_ALLOCATOR_H_
