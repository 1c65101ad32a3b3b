#include "worker/dist/collective_ring.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/log.h"

namespace lockstep {
namespace {

constexpr uint64_t kMagic = 0x31676e69726b636c;  // "lckring1"
constexpr int kGroupWords = kCollectiveGroupBytes / sizeof(uint64_t);

static_assert(std::atomic<uint64_t>::is_always_lock_free,
              "the ring is shared between processes");

}  // namespace

// All words are atomic, so that a torn read can't happen and a reader that was
// overtaken sees `number` change.
struct CollectiveRing::Layout {
  struct Slot {
    // 0 while it is being written.
    std::atomic<uint64_t> number{0};
    std::atomic<uint64_t> kind{0};
    // Number in the upper 56 bits, state in the lower 8: a state can't land in
    // the slot's next record.
    std::atomic<uint64_t> state{0};
    std::atomic<uint64_t> sequence{0};
    std::atomic<uint64_t> bytes{0};
    std::array<std::atomic<uint64_t>, kGroupWords> group{};
  };

  std::atomic<uint64_t> magic{0};
  std::atomic<uint64_t> launched{0};
  alignas(64) std::array<Slot, kCapacity> slots;

  Slot& SlotOf(uint64_t number) { return slots[number % kCapacity]; }
};

const char* Name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all-reduce";
    case CollectiveKind::kReduce:
      return "reduce";
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kAllGather:
      return "all-gather";
    case CollectiveKind::kAllToAll:
      return "all-to-all";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kExchange:
      return "exchange";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  return "unknown";
}

const char* Name(CollectiveState state) {
  switch (state) {
    case CollectiveState::kQueued:
      return "queued";
    case CollectiveState::kRunning:
      return "running";
    case CollectiveState::kDone:
      return "done";
    case CollectiveState::kFailed:
      return "failed";
  }
  return "unknown";
}

std::string CollectiveRecord::ToString() const {
  return absl::StrCat(Name(kind), " ", sequence, " of group ", group, " (",
                      bytes, " bytes), ", Name(state));
}

int64_t CollectiveRing::BufferBytes() { return sizeof(Layout); }

std::unique_ptr<CollectiveRing> CollectiveRing::Create(void* buffer) {
  static_assert(alignof(Layout) <= kBufferAlignment);
  CHECK(reinterpret_cast<uintptr_t>(buffer) % kBufferAlignment == 0)
      << "unaligned ring";
  auto* layout = new (buffer) Layout;
  layout->magic.store(kMagic, std::memory_order_release);
  return absl::WrapUnique(new CollectiveRing(layout));
}

absl::StatusOr<std::unique_ptr<CollectiveRing>> CollectiveRing::Attach(
    void* buffer) {
  auto* layout = static_cast<Layout*>(buffer);
  if (layout->magic.load(std::memory_order_acquire) != kMagic) {
    return absl::FailedPreconditionError("no collective ring in this memory");
  }
  return absl::WrapUnique(new CollectiveRing(layout));
}

uint64_t CollectiveRing::Begin(std::string_view group, CollectiveKind kind,
                               uint64_t sequence, uint64_t bytes) {
  const uint64_t number = layout_->launched.load(std::memory_order_relaxed) + 1;
  Layout::Slot& slot = layout_->SlotOf(number);
  slot.number.store(0, std::memory_order_relaxed);
  // A reader that sees one of the words below sees the zero above.
  std::array<char, kCollectiveGroupBytes> name{};
  std::memcpy(name.data(), group.data(), std::min(group.size(), name.size()));
  for (int i = 0; i < kGroupWords; ++i) {
    uint64_t word;
    std::memcpy(&word, name.data() + i * sizeof(word), sizeof(word));
    slot.group[i].store(word, std::memory_order_release);
  }
  slot.kind.store(static_cast<uint64_t>(kind), std::memory_order_release);
  slot.sequence.store(sequence, std::memory_order_release);
  slot.bytes.store(bytes, std::memory_order_release);
  slot.state.store(number << 8, std::memory_order_release);
  slot.number.store(number, std::memory_order_release);
  layout_->launched.store(number, std::memory_order_release);
  return number;
}

void CollectiveRing::SetState(uint64_t number, CollectiveState state) {
  std::atomic<uint64_t>& word = layout_->SlotOf(number).state;
  uint64_t held = word.load(std::memory_order_relaxed);
  while (held >> 8 == number &&
         !word.compare_exchange_weak(
             held, number << 8 | static_cast<uint64_t>(state),
             std::memory_order_release, std::memory_order_relaxed)) {
  }
}

std::vector<CollectiveRecord> CollectiveRing::Snapshot() const {
  const uint64_t launched = layout_->launched.load(std::memory_order_acquire);
  const uint64_t oldest = launched > kCapacity ? launched - kCapacity + 1 : 1;
  std::vector<CollectiveRecord> records;
  for (uint64_t number = oldest; number <= launched; ++number) {
    const Layout::Slot& slot = layout_->SlotOf(number);
    if (slot.number.load(std::memory_order_acquire) != number) continue;
    CollectiveRecord record;
    record.number = number;
    record.kind =
        static_cast<CollectiveKind>(slot.kind.load(std::memory_order_acquire));
    record.sequence = slot.sequence.load(std::memory_order_acquire);
    record.bytes = slot.bytes.load(std::memory_order_acquire);
    record.state = static_cast<CollectiveState>(
        slot.state.load(std::memory_order_acquire) & 0xff);
    std::array<char, kCollectiveGroupBytes> name{};
    for (int i = 0; i < kGroupWords; ++i) {
      const uint64_t word = slot.group[i].load(std::memory_order_acquire);
      std::memcpy(name.data() + i * sizeof(word), &word, sizeof(word));
    }
    record.group = std::string(name.data(), strnlen(name.data(), name.size()));
    // Overtaken by the writer meanwhile: what was read may be mixed.
    if (slot.number.load(std::memory_order_relaxed) != number) continue;
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace lockstep
