#include "worker/data/sample_order.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> Epoch(uint64_t seed, int64_t samples, int64_t epoch) {
  const SampleOrder order(seed, samples);
  std::vector<int64_t> taken;
  for (int64_t i = 0; i < samples; ++i) {
    taken.push_back(order.At(epoch * samples + i));
  }
  return taken;
}

class SampleOrderSizes : public ::testing::TestWithParam<int64_t> {};

TEST_P(SampleOrderSizes, EachEpochTakesEachSampleOnce) {
  for (int64_t epoch : {0, 1, 7}) {
    std::vector<int64_t> taken = Epoch(3, GetParam(), epoch);
    std::sort(taken.begin(), taken.end());
    for (int64_t i = 0; i < GetParam(); ++i) {
      ASSERT_EQ(taken[static_cast<size_t>(i)], i) << "epoch " << epoch;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ManySizes, SampleOrderSizes,
                         ::testing::Values(1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 63,
                                           64, 65, 100, 255, 256, 257, 1000,
                                           4096, 4097, 10007, 65537));

// Pinned: a change of these is a change of every loss curve.
TEST(SampleOrderTest, GoldenValues) {
  EXPECT_THAT(Epoch(0, 10, 0), ElementsAre(7, 4, 5, 8, 0, 6, 2, 1, 3, 9));
  EXPECT_THAT(Epoch(0, 10, 1), ElementsAre(5, 2, 8, 0, 7, 3, 9, 6, 1, 4));
  EXPECT_THAT(Epoch(1, 10, 0), ElementsAre(7, 3, 5, 8, 2, 0, 6, 1, 4, 9));
  const SampleOrder large(42, int64_t{1} << 40);
  EXPECT_EQ(large.At(0), 740653681810);
  EXPECT_EQ(large.At((int64_t{1} << 40) + 5), 186804220579);
}

TEST(SampleOrderTest, EpochsAndSeedsDiffer) {
  const std::vector<int64_t> first = Epoch(5, 1000, 0);
  EXPECT_NE(first, Epoch(5, 1000, 1));
  EXPECT_NE(first, Epoch(6, 1000, 0));
  EXPECT_EQ(first, Epoch(5, 1000, 0));
}

// The mean distance of where a sample goes from where it was is n / 3 for
// random permutations.
TEST(SampleOrderTest, SamplesSpreadEvenly) {
  constexpr int64_t kSamples = 20000;
  const std::vector<int64_t> taken = Epoch(11, kSamples, 0);
  double distance = 0.0;
  int64_t rises = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    distance +=
        std::abs(static_cast<double>(taken[static_cast<size_t>(i)] - i));
    if (i > 0) {
      rises +=
          taken[static_cast<size_t>(i)] > taken[static_cast<size_t>(i - 1)];
    }
  }
  EXPECT_NEAR(distance / kSamples / kSamples, 1.0 / 3.0, 0.01);
  EXPECT_NEAR(static_cast<double>(rises) / kSamples, 0.5, 0.02);
}

TEST(ShareOfTest, SharesCoverTheBatchInOrderAndDifferByAtMostOne) {
  for (int64_t batch : {0, 1, 2, 3, 7, 8, 31, 32, 33, 1000}) {
    for (int64_t count : {1, 2, 3, 4, 5, 8, 16}) {
      int64_t next = 0;
      for (int64_t i = 0; i < count; ++i) {
        const BatchShare share = ShareOf(batch, i, count);
        EXPECT_EQ(share.first, next);
        EXPECT_EQ(share.first, i * batch / count);
        EXPECT_GE(share.last - share.first, batch / count);
        EXPECT_LE(share.last - share.first, batch / count + 1);
        next = share.last;
      }
      EXPECT_EQ(next, batch);
    }
  }
}

}  // namespace
}  // namespace lockstep
