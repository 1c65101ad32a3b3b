// Allocator: all memory of one device. It counts live bytes by category and in
// all, keeps each peak, and holds the device's limit: going past it is
// RESOURCE_EXHAUSTED with category, bytes wanted, bytes held and limit.
//
// Memory comes back uninitialised and 64-byte aligned. Freed blocks are kept
// and reused, so that a steady training step asks the system for nothing.
// Threads: all functions may be called from any thread. Buffers must go before
// their allocator.
#ifndef LOCKSTEP_KERNELS_ALLOCATOR_H_
#define LOCKSTEP_KERNELS_ALLOCATOR_H_

#include <array>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"

namespace lockstep {

enum class MemoryCategory : uint8_t {
  kParameter,
  kGradient,
  kOptimizerState,
  kActivation,
  // Gathered units, buckets, workspaces, scratchpads, staged inputs.
  kBuffer,
};
inline constexpr int kMemoryCategories = 5;
const char* Name(MemoryCategory category);

struct MemoryCount {
  int64_t live_bytes = 0;
  int64_t peak_bytes = 0;
};

struct MemoryUse {
  MemoryCount total;
  std::array<MemoryCount, kMemoryCategories> by_category;
};

class Allocator;

// Owns one block; gives it back when it goes. Move-only.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Allocator* allocator, void* data, int64_t bytes,
         MemoryCategory category)
      : allocator_(allocator),
        data_(data),
        bytes_(bytes),
        category_(category) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Reset();
    allocator_ = std::exchange(other.allocator_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    category_ = other.category_;
    return *this;
  }
  ~Buffer() { Reset(); }

  void Reset();
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  MemoryCategory category() const { return category_; }

 private:
  Allocator* allocator_ = nullptr;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  MemoryCategory category_ = MemoryCategory::kBuffer;
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  // `bytes` may be 0: a valid, unique, empty block.
  virtual absl::StatusOr<Buffer> Allocate(int64_t bytes,
                                          MemoryCategory category) = 0;
  virtual MemoryUse Use() const = 0;
  // 0 is no limit.
  virtual int64_t limit_bytes() const = 0;

 private:
  friend class Buffer;
  virtual void Free(void* data, int64_t bytes, MemoryCategory category) = 0;
};

inline void Buffer::Reset() {
  if (allocator_ != nullptr) allocator_->Free(data_, bytes_, category_);
  allocator_ = nullptr;
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_ALLOCATOR_H_
