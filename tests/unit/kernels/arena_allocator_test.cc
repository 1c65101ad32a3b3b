#include "kernels/cpu/arena_allocator.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::cpu::ArenaAllocator;
using ::lockstep::testing::StatusIs;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kPlainMalloc = true;
#else
constexpr bool kPlainMalloc = false;
#endif

std::unique_ptr<ArenaAllocator> Make(int64_t limit_bytes = 0) {
  auto allocator = ArenaAllocator::Make(limit_bytes);
  EXPECT_OK(allocator);
  return *std::move(allocator);
}

Buffer Take(Allocator& allocator, int64_t bytes,
            MemoryCategory category = MemoryCategory::kActivation) {
  auto buffer = allocator.Allocate(bytes, category);
  EXPECT_OK(buffer);
  return *std::move(buffer);
}

TEST(ArenaAllocatorTest, CountsLiveAndPeakByCategory) {
  auto allocator = Make();
  Buffer a = Take(*allocator, 1000, MemoryCategory::kParameter);
  {
    Buffer b = Take(*allocator, 500, MemoryCategory::kGradient);
    Buffer c = Take(*allocator, 300, MemoryCategory::kGradient);
  }
  Buffer d = Take(*allocator, 100, MemoryCategory::kBuffer);
  const MemoryUse use = allocator->Use();
  EXPECT_EQ(use.total.live_bytes, 1100);
  EXPECT_EQ(use.total.peak_bytes, 1800);
  const auto of = [&](MemoryCategory category) {
    return use.by_category[static_cast<int>(category)];
  };
  EXPECT_EQ(of(MemoryCategory::kParameter).live_bytes, 1000);
  EXPECT_EQ(of(MemoryCategory::kGradient).live_bytes, 0);
  EXPECT_EQ(of(MemoryCategory::kGradient).peak_bytes, 800);
  EXPECT_EQ(of(MemoryCategory::kBuffer).peak_bytes, 100);
}

TEST(ArenaAllocatorTest, RefusesWhatPassesTheLimitAndSaysSo) {
  auto allocator = Make(1000);
  EXPECT_EQ(allocator->limit_bytes(), 1000);
  Buffer a = Take(*allocator, 600);
  EXPECT_THAT(
      allocator->Allocate(401, MemoryCategory::kOptimizerState).status(),
      StatusIs(absl::StatusCode::kResourceExhausted,
               ::testing::Eq("device memory: optimizer state wants 401 bytes, "
                             "600 are held, the limit is 1000")));
  EXPECT_EQ(allocator->Use().total.live_bytes, 600);
  Buffer b = Take(*allocator, 400);
  a.Reset();
  Buffer c = Take(*allocator, 600);
}

TEST(ArenaAllocatorTest, RefusesAbsurdSizes) {
  auto allocator = Make();
  EXPECT_THAT(allocator->Allocate(INT64_MAX, MemoryCategory::kBuffer).status(),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(allocator->Allocate(-1, MemoryCategory::kBuffer).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      Make(INT64_MAX)->Allocate(INT64_MAX, MemoryCategory::kBuffer).status(),
      StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(ArenaAllocatorTest, EmptyBlocksAreValidAndUnique) {
  auto allocator = Make();
  Buffer a = Take(*allocator, 0);
  Buffer b = Take(*allocator, 0);
  EXPECT_NE(a.data(), nullptr);
  EXPECT_NE(a.data(), b.data());
  EXPECT_EQ(allocator->Use().total.live_bytes, 0);
}

TEST(ArenaAllocatorTest, MovedBufferIsGivenBackOnce) {
  auto allocator = Make();
  Buffer a = Take(*allocator, 100);
  Buffer b = std::move(a);
  Buffer c = Take(*allocator, 50);
  c = std::move(b);
  EXPECT_EQ(allocator->Use().total.live_bytes, 100);
  c.Reset();
  c.Reset();
  EXPECT_EQ(allocator->Use().total.live_bytes, 0);
}

TEST(ArenaAllocatorTest, BlocksAreAlignedAndDoNotOverlap) {
  auto allocator = Make();
  std::mt19937 random(7);
  struct Block {
    Buffer buffer;
    unsigned char mark;
  };
  std::vector<Block> blocks;
  for (int i = 0; i < 3000; ++i) {
    if (!blocks.empty() && random() % 2 == 0) {
      const size_t which = random() % blocks.size();
      const Block& block = blocks[which];
      const auto* bytes =
          static_cast<const unsigned char*>(block.buffer.data());
      for (int64_t j = 0; j < block.buffer.bytes(); ++j) {
        ASSERT_EQ(bytes[j], block.mark);
      }
      std::swap(blocks[which], blocks.back());
      blocks.pop_back();
      continue;
    }
    Block block = {Take(*allocator, random() % 5000),
                   static_cast<unsigned char>(random())};
    ASSERT_EQ(reinterpret_cast<uintptr_t>(block.buffer.data()) % 64, 0u);
    std::memset(block.buffer.data(), block.mark, block.buffer.bytes());
    blocks.push_back(std::move(block));
  }
  blocks.clear();
  EXPECT_EQ(allocator->Use().total.live_bytes, 0);
}

TEST(ArenaAllocatorTest, FreedNeighboursMergeAndAreReused) {
  if (kPlainMalloc) GTEST_SKIP() << "AddressSanitizer takes the arena's place";
  auto allocator = Make();
  std::vector<Buffer> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(Take(*allocator, 1 << 20));
  void* const first = blocks[0].data();
  Buffer last = Take(*allocator, 64);
  for (int i : {1, 3, 5, 7, 0, 2, 6, 4}) blocks[i].Reset();
  const int64_t held = allocator->held_bytes();
  Buffer all = Take(*allocator, 8 << 20);
  EXPECT_EQ(all.data(), first);
  EXPECT_EQ(allocator->held_bytes(), held);
}

TEST(ArenaAllocatorTest, SteadyStepHoldsItsPeakAndNoMore) {
  if (kPlainMalloc) GTEST_SKIP() << "AddressSanitizer takes the arena's place";
  auto allocator = Make();
  int64_t held = 0;
  for (int step = 0; step < 20; ++step) {
    Buffer a = Take(*allocator, 3 << 20);
    Buffer b = Take(*allocator, 5 << 20);
    a.Reset();
    Buffer c = Take(*allocator, 2 << 20);
    Buffer d = Take(*allocator, 1 << 20);
    if (step == 0) {
      held = allocator->held_bytes();
      EXPECT_EQ(held, allocator->Use().total.peak_bytes);
    }
    EXPECT_EQ(allocator->held_bytes(), held) << "step " << step;
  }
}

TEST(ArenaAllocatorTest, ChangingSizesDoNotGrowWhatIsHeldWithoutBound) {
  if (kPlainMalloc) GTEST_SKIP() << "AddressSanitizer takes the arena's place";
  auto allocator = Make();
  std::mt19937 random(3);
  int64_t most_held = 0;
  for (int step = 0; step < 300; ++step) {
    std::vector<Buffer> blocks;
    for (int i = 0; i < 40; ++i) {
      blocks.push_back(Take(*allocator, random() % (16 << 20)));
      if (random() % 3 == 0) blocks[random() % blocks.size()].Reset();
    }
    most_held = std::max(most_held, allocator->held_bytes());
  }
  const int64_t peak = allocator->Use().total.peak_bytes;
  EXPECT_LT(most_held, peak * 3 / 2 + (int64_t{64} << 20));
}

TEST(ArenaAllocatorTest, HoldsManyTimesTheLimitOverTime) {
  auto allocator = Make(1 << 20);
  for (int i = 0; i < 1000; ++i) Take(*allocator, 1 << 20);
  EXPECT_EQ(allocator->Use().total.peak_bytes, 1 << 20);
}

TEST(MemoryCategoryTest, EachHasAName) {
  EXPECT_STREQ(Name(MemoryCategory::kParameter), "parameter");
  EXPECT_STREQ(Name(MemoryCategory::kGradient), "gradient");
  EXPECT_STREQ(Name(MemoryCategory::kOptimizerState), "optimizer state");
  EXPECT_STREQ(Name(MemoryCategory::kActivation), "activation");
  EXPECT_STREQ(Name(MemoryCategory::kBuffer), "buffer");
}

}  // namespace
}  // namespace lockstep
