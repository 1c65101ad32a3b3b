#include "worker/data/batch_loader.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/data/fake_dataset.h"

namespace lockstep {
namespace {

using ::lockstep::testing::FakeDataset;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

BatchLoader::Options Options(int64_t global_batch, DataShare share,
                             int64_t micro_batch) {
  BatchLoader::Options options;
  options.global_batch = global_batch;
  options.share = share;
  options.micro_batch = micro_batch;
  return options;
}

// Samples of a step in order, as the global sequence's positions.
std::vector<uint32_t> Positions(const StepBatch& step) {
  std::vector<uint32_t> positions;
  for (const MicroBatch& batch : step.micro_batches) {
    for (size_t i = 0; i + 1 < batch.sample_bounds.size(); ++i) {
      positions.push_back(
          batch.samples[static_cast<size_t>(batch.sample_bounds[i])]);
    }
  }
  return positions;
}

TEST(BatchLoaderTest, SharesTogetherAreTheGlobalBatchOfOneShare) {
  const FakeDataset dataset(10);
  const SampleOrder order(1, 10);
  for (int64_t count : {1, 2, 3, 4, 9}) {
    std::vector<std::unique_ptr<BatchLoader>> loaders;
    for (int64_t i = 0; i < count; ++i) {
      loaders.push_back(std::make_unique<BatchLoader>(
          dataset, order, Options(7, {i, count}, 2)));
    }
    for (int64_t step = 0; step < 5; ++step) {
      std::vector<uint32_t> positions;
      std::vector<int32_t> tokens;
      int64_t rows = 0;
      for (const auto& loader : loaders) {
        ASSERT_OK_AND_ASSIGN(const StepBatch batch, loader->Next());
        EXPECT_EQ(batch.first_position, step * 7);
        EXPECT_EQ(batch.samples, 7);
        rows += batch.rows;
        for (uint32_t position : Positions(batch)) {
          positions.push_back(position);
        }
        int64_t expected = 0;
        for (int64_t p = step * 7; p < (step + 1) * 7; ++p) {
          expected += dataset.ValidTargets(order.At(p));
        }
        EXPECT_EQ(batch.valid_targets, expected);
        for (const MicroBatch& micro : batch.micro_batches) {
          EXPECT_LE(micro.sample_bounds.size(), 3u);  // two samples
          tokens.insert(tokens.end(), micro.tokens.begin(), micro.tokens.end());
        }
      }
      // In order, each position once, with the sample that the order says.
      ASSERT_EQ(positions.size(), 7u);
      size_t row = 0;
      for (int64_t i = 0; i < 7; ++i) {
        const int64_t position = step * 7 + i;
        EXPECT_EQ(positions[static_cast<size_t>(i)], position);
        const int64_t sample = order.At(position);
        for (int64_t r = 0; r < dataset.ValidTargets(sample); ++r) {
          EXPECT_EQ(tokens[row++], sample);
        }
      }
      EXPECT_EQ(row, tokens.size());
      EXPECT_EQ(rows, static_cast<int64_t>(tokens.size()));
    }
  }
}

TEST(BatchLoaderTest, AShareWithoutSamplesHasNoMicroBatches) {
  const FakeDataset dataset(5);
  BatchLoader loader(dataset, SampleOrder(0, 5), Options(1, {0, 2}, 1));
  ASSERT_OK_AND_ASSIGN(const StepBatch batch, loader.Next());
  EXPECT_THAT(batch.micro_batches, IsEmpty());
  EXPECT_EQ(batch.rows, 0);
  EXPECT_GT(batch.valid_targets, 0);
}

TEST(BatchLoaderTest, TheLastStepOfTheLastEpochIsShort) {
  const FakeDataset dataset(10);
  BatchLoader::Options options = Options(4, {0, 1}, 8);
  options.total_positions = 2 * 10;
  options.first_position = 12;
  options.global_batch = 6;
  BatchLoader loader(dataset, SampleOrder(2, 10), options);
  ASSERT_OK_AND_ASSIGN(StepBatch batch, loader.Next());
  EXPECT_EQ(batch.samples, 6);
  EXPECT_EQ(batch.first_position, 12);
  ASSERT_OK_AND_ASSIGN(batch, loader.Next());
  EXPECT_EQ(batch.samples, 2);
  EXPECT_EQ(batch.first_position, 18);
  EXPECT_THAT(loader.Next(), StatusIs(absl::StatusCode::kOutOfRange,
                                      HasSubstr("position 20")));
}

TEST(BatchLoaderTest, ALoaderFromALaterPositionGoesOnAlike) {
  const FakeDataset dataset(23);
  BatchLoader whole(dataset, SampleOrder(2, 23), Options(5, {1, 2}, 2));
  BatchLoader::Options later = Options(5, {1, 2}, 2);
  later.first_position = 3 * 5;
  BatchLoader resumed(dataset, SampleOrder(2, 23), later);
  for (int i = 0; i < 3; ++i) ASSERT_OK(whole.Next());
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK_AND_ASSIGN(const StepBatch a, whole.Next());
    ASSERT_OK_AND_ASSIGN(const StepBatch b, resumed.Next());
    ASSERT_EQ(a.micro_batches.size(), b.micro_batches.size());
    for (size_t m = 0; m < a.micro_batches.size(); ++m) {
      EXPECT_EQ(a.micro_batches[m].tokens, b.micro_batches[m].tokens);
    }
  }
}

TEST(BatchLoaderTest, NonsenseOptionsAreRefused) {
  const FakeDataset dataset(5);
  BatchLoader loader(dataset, SampleOrder(0, 5), Options(4, {2, 2}, 1));
  EXPECT_THAT(loader.Next(), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("share 2 of 2")));
}

TEST(BatchLoaderTest, DroppingAnUnusedLoaderStopsItsThread) {
  const FakeDataset dataset(5);
  for (int i = 0; i < 20; ++i) {
    BatchLoader loader(dataset, SampleOrder(0, 5), Options(4, {0, 1}, 1));
  }
}

TEST(ValidationBatchesTest, SharesTogetherTakeEachSampleOnce) {
  const FakeDataset dataset(11);
  for (int64_t count : {1, 2, 3, 5, 13}) {
    std::map<uint32_t, int> taken;
    for (int64_t i = 0; i < count; ++i) {
      ValidationBatches batches(dataset, {i, count}, 4);
      int64_t made = 0;
      while (const MicroBatch* batch = batches.Next()) {
        ++made;
        EXPECT_LE(batch->sample_bounds.size(), 5u);
        for (size_t s = 0; s + 1 < batch->sample_bounds.size(); ++s) {
          ++taken[batch->samples[static_cast<size_t>(batch->sample_bounds[s])]];
        }
      }
      EXPECT_EQ(made, batches.count());
    }
    EXPECT_EQ(taken.size(), 11u);
    for (const auto& [sample, times] : taken) EXPECT_EQ(times, 1) << sample;
  }
}

}  // namespace
}  // namespace lockstep
