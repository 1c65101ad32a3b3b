#include "worker/dist/collective_ring.h"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/unit/dist/group_ranks.h"

namespace lockstep {
namespace {

using testing::StatusIs;

// Memory for one ring.
class RingMemory {
 public:
  RingMemory()
      : data_(std::aligned_alloc(
            CollectiveRing::kBufferAlignment,
            (CollectiveRing::BufferBytes() + 63) / 64 * 64)) {}
  ~RingMemory() { std::free(data_); }
  void* data() const { return data_; }

 private:
  void* const data_;
};

TEST(CollectiveRingTest, TellsWhatWasLaunchedAndHowFarItCame) {
  const RingMemory memory;
  const auto ring = CollectiveRing::Create(memory.data());
  EXPECT_TRUE(ring->Snapshot().empty());
  const uint64_t first = ring->Begin("dp", CollectiveKind::kAllReduce, 1, 4096);
  ring->Begin("a group with a name of more bytes", CollectiveKind::kBarrier, 7,
              0);
  ring->SetState(first, CollectiveState::kRunning);
  const std::vector<CollectiveRecord> records = ring->Snapshot();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].ToString(),
            "all-reduce 1 of group dp (4096 bytes), running");
  EXPECT_EQ(records[1].ToString(),
            "barrier 7 of group a group with a name of m (0 bytes), queued");
}

TEST(CollectiveRingTest, KeepsTheNewest) {
  const RingMemory memory;
  const auto ring = CollectiveRing::Create(memory.data());
  const uint64_t first = ring->Begin("dp", CollectiveKind::kAllReduce, 1, 8);
  for (int i = 0; i < CollectiveRing::kCapacity; ++i) {
    ring->Begin("dp", CollectiveKind::kAllReduce, 2 + i, 8);
  }
  // Its record is gone; the one in its place isn't touched.
  ring->SetState(first, CollectiveState::kFailed);
  const std::vector<CollectiveRecord> records = ring->Snapshot();
  ASSERT_EQ(records.size(), static_cast<size_t>(CollectiveRing::kCapacity));
  EXPECT_EQ(records.front().sequence, 2u);
  EXPECT_EQ(records.back().sequence, 1u + CollectiveRing::kCapacity);
  for (const CollectiveRecord& record : records) {
    EXPECT_EQ(record.state, CollectiveState::kQueued);
  }
}

TEST(CollectiveRingTest, SecondViewSeesTheSameRecords) {
  const RingMemory memory;
  const auto ring = CollectiveRing::Create(memory.data());
  ring->Begin("pp", CollectiveKind::kExchange, 3, 10);
  ASSERT_OK_AND_ASSIGN(const auto view, CollectiveRing::Attach(memory.data()));
  ASSERT_EQ(view->Snapshot().size(), 1u);
  EXPECT_EQ(view->Snapshot()[0].group, "pp");
}

TEST(CollectiveRingTest, OtherMemoryIsRefused) {
  const RingMemory memory;
  std::fill_n(static_cast<char*>(memory.data()), 64, 'x');
  EXPECT_THAT(CollectiveRing::Attach(memory.data()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(CollectiveRingTest, ReaderSeesWholeRecordsWhileTheyAreOverwritten) {
  const RingMemory memory;
  const auto ring = CollectiveRing::Create(memory.data());
  std::atomic<bool> ending{false};
  std::thread writer([&] {
    for (uint64_t i = 1; !ending.load(); ++i) {
      // All fields of a record say the same.
      const uint64_t number = ring->Begin(
          i % 2 == 0 ? "even" : "odd",
          i % 2 == 0 ? CollectiveKind::kAllGather : CollectiveKind::kBroadcast,
          i, i * 3);
      ring->SetState(number, CollectiveState::kDone);
    }
  });
  for (int look = 0; look < 200; ++look) {
    for (const CollectiveRecord& record : ring->Snapshot()) {
      EXPECT_EQ(record.sequence, record.number);
      EXPECT_EQ(record.bytes, record.number * 3);
      EXPECT_EQ(record.group, record.number % 2 == 0 ? "even" : "odd");
      EXPECT_EQ(record.kind, record.number % 2 == 0
                                 ? CollectiveKind::kAllGather
                                 : CollectiveKind::kBroadcast);
    }
  }
  ending.store(true);
  writer.join();
}

TEST(CollectiveRingTest, GroupsWriteWhatTheyRun) {
  const RingMemory memory;
  const auto ring = CollectiveRing::Create(memory.data());
  testing::GroupRun run;
  run.size = 2;
  run.ring = ring.get();
  EXPECT_OK(testing::RunGroup(run, [](ProcessGroup& group) -> absl::Status {
    float values[4] = {1, 2, 3, 4};
    const Tensor tensor(values, DType::kFloat32, {4}, DeviceKind::kCpu);
    RETURN_IF_ERROR(group.Barrier()->Wait());
    return group.AllReduce(tensor, ReduceOp::kMax)->Wait();
  }));
  const std::vector<CollectiveRecord> records = ring->Snapshot();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].ToString(), "barrier 1 of group test (0 bytes), done");
  EXPECT_EQ(records[1].ToString(),
            "all-reduce 2 of group test (16 bytes), done");
}

}  // namespace
}  // namespace lockstep
