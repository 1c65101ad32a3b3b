#include "kernels/cpu/arena_allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/log.h"

#if defined(__SANITIZE_ADDRESS__)
#define LOCKSTEP_ARENA_IS_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOCKSTEP_ARENA_IS_MALLOC 1
#endif
#endif

namespace lockstep::cpu {
namespace {

#ifdef LOCKSTEP_ARENA_IS_MALLOC
constexpr bool kPlainMalloc = true;
#else
constexpr bool kPlainMalloc = false;
#endif

constexpr int64_t kAlignment = 64;
// Free pages below this are kept whatever happens.
constexpr int64_t kSpareBytes = int64_t{64} << 20;

int64_t RoundUp(int64_t bytes) {
  return std::max((bytes + kAlignment - 1) / kAlignment * kAlignment,
                  kAlignment);
}

void Count(int64_t bytes, MemoryCount& count) {
  count.live_bytes += bytes;
  count.peak_bytes = std::max(count.peak_bytes, count.live_bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArenaAllocator>> ArenaAllocator::Make(
    int64_t limit_bytes) {
  // Addresses for four times the host's memory: freed ranges may be too small
  // for later blocks.
  const int64_t host_bytes =
      int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  int64_t reserved = std::max(4 * host_bytes, int64_t{1} << 32);
  void* base = MAP_FAILED;
  // Less where the address space is limited (RLIMIT_AS).
  for (; reserved >= int64_t{1} << 26; reserved /= 2) {
    base = mmap(nullptr, reserved, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base != MAP_FAILED) break;
  }
  if (base == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "can't reserve addresses for the device's memory: ", strerror(errno)));
  }
  // Advice only: without huge pages all works, with more TLB misses.
  madvise(base, reserved, MADV_HUGEPAGE);
  return std::unique_ptr<ArenaAllocator>(
      new ArenaAllocator(limit_bytes, static_cast<char*>(base), reserved));
}

ArenaAllocator::~ArenaAllocator() {
  {
    absl::MutexLock lock(&mutex_);
    CHECK(taken_bytes_ == 0)
        << taken_bytes_ << " bytes outlive their allocator";
  }
  munmap(base_, reserved_bytes_);
}

absl::StatusOr<Buffer> ArenaAllocator::Allocate(int64_t bytes,
                                                MemoryCategory category) {
  if (bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("an allocation of ", bytes, " bytes"));
  }
  absl::MutexLock lock(&mutex_);
  const int64_t live = use_.total.live_bytes;
  // Written so that no size overflows.
  if (limit_bytes_ > 0 &&
      (bytes > limit_bytes_ || live > limit_bytes_ - bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "device memory: ", Name(category), " wants ", bytes, " bytes, ", live,
        " are held, the limit is ", limit_bytes_));
  }
  void* data = nullptr;
  if (bytes <= reserved_bytes_) {
    if constexpr (kPlainMalloc) {
      data = std::aligned_alloc(kAlignment, RoundUp(bytes));
      if (data != nullptr) taken_bytes_ += RoundUp(bytes);
    } else {
      const int64_t offset = Take(RoundUp(bytes));
      if (offset >= 0) data = base_ + offset;
    }
  }
  if (data == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "host memory: ", Name(category), " wants ", bytes, " bytes, ", live,
        " are held, addresses for ", reserved_bytes_, " are reserved"));
  }
  Count(bytes, use_.total);
  Count(bytes, use_.by_category[static_cast<int>(category)]);
  return Buffer(this, data, bytes, category);
}

void ArenaAllocator::Free(void* data, int64_t bytes, MemoryCategory category) {
  absl::MutexLock lock(&mutex_);
  Count(-bytes, use_.total);
  Count(-bytes, use_.by_category[static_cast<int>(category)]);
  if constexpr (kPlainMalloc) {
    taken_bytes_ -= RoundUp(bytes);
    std::free(data);
  } else {
    GiveBack(static_cast<char*>(data) - base_, RoundUp(bytes));
  }
}

MemoryUse ArenaAllocator::Use() const {
  absl::MutexLock lock(&mutex_);
  return use_;
}

int64_t ArenaAllocator::held_bytes() const {
  absl::MutexLock lock(&mutex_);
  return taken_bytes_ + touched_free_bytes_;
}

void ArenaAllocator::InsertFree(int64_t offset, FreeBlock block) {
  free_.emplace(offset, block);
  free_by_size_.emplace(block.bytes, offset);
  if (block.touched) touched_free_bytes_ += block.bytes;
}

void ArenaAllocator::EraseFree(std::map<int64_t, FreeBlock>::iterator block) {
  if (block->second.touched) touched_free_bytes_ -= block->second.bytes;
  free_by_size_.erase({block->second.bytes, block->first});
  free_.erase(block);
}

int64_t ArenaAllocator::Take(int64_t bytes) {
  const auto fit = free_by_size_.lower_bound({bytes, 0});
  if (fit != free_by_size_.end()) {
    const int64_t offset = fit->second;
    const auto found = free_.find(offset);
    const FreeBlock block = found->second;
    EraseFree(found);
    if (block.bytes > bytes) {
      InsertFree(offset + bytes, {block.bytes - bytes, block.touched});
    }
    taken_bytes_ += bytes;
    return offset;
  }
  // Nothing fits: grow, from the free block at the end if there is one.
  int64_t offset = end_;
  if (!free_.empty()) {
    const auto last = std::prev(free_.end());
    if (last->first + last->second.bytes == end_) offset = last->first;
  }
  if (bytes > reserved_bytes_ - offset) return -1;
  if (offset < end_) EraseFree(std::prev(free_.end()));
  if (touched_free_bytes_ > kSpareBytes + taken_bytes_ / 16) {
    ReleaseFreePages();
  }
  end_ = offset + bytes;
  taken_bytes_ += bytes;
  return offset;
}

void ArenaAllocator::GiveBack(int64_t offset, int64_t bytes) {
  taken_bytes_ -= bytes;
  FreeBlock block = {bytes, true};
  auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second.bytes == offset) {
      offset = previous->first;
      block.bytes += previous->second.bytes;
      EraseFree(previous);
    }
  }
  next = free_.lower_bound(offset);
  if (next != free_.end() && offset + block.bytes == next->first) {
    block.bytes += next->second.bytes;
    EraseFree(next);
  }
  InsertFree(offset, block);
}

void ArenaAllocator::ReleaseFreePages() {
  const int64_t page = sysconf(_SC_PAGESIZE);
  for (auto& [offset, block] : free_) {
    if (!block.touched) continue;
    const int64_t begin = (offset + page - 1) / page * page;
    const int64_t end = (offset + block.bytes) / page * page;
    if (begin < end) madvise(base_ + begin, end - begin, MADV_DONTNEED);
    block.touched = false;
  }
  touched_free_bytes_ = 0;
}

}  // namespace lockstep::cpu
