#include "worker/parallel/data/gradient_bucket.h"

#include <gtest/gtest.h>

#include <memory>

#include "kernels/device.h"
#include "tests/testing/status_matchers.h"
#include "worker/parallel/data/ddp.h"

namespace lockstep {
namespace {

// Units of 100, 10, 10, 10 and 50 elements.
class GradientBucketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_, MakeCpuDevice({}));
    std::vector<LogicalTensor> tensors;
    int unit = 0;
    for (const int64_t elements : {100, 10, 10, 10, 50}) {
      LogicalTensor tensor;
      tensor.name = "t" + std::to_string(unit);
      tensor.shape = tensor.held_shape = {elements};
      tensor.unit = unit++;
      tensors.push_back(tensor);
    }
    ASSERT_OK_AND_ASSIGN(
        store_,
        ParameterStore::Create(device_->stream(), tensors, DType::kFloat32,
                               GradientStorage::kAllocate));
  }
  std::unique_ptr<Device> device_;
  std::unique_ptr<ParameterStore> store_;
};

TEST_F(GradientBucketTest, NeighboursJoinUntilABucketIsFull) {
  const std::vector<GradientBucket> buckets = PlanBuckets(*store_, 4 * 30);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].last_unit, 4);
  EXPECT_EQ(buckets[1].last_unit, 1);
  EXPECT_EQ(buckets[2].last_unit, 0);
}

TEST_F(GradientBucketTest, EveryGradientIsInExactlyOneBucket) {
  for (const int64_t bytes : {1, 60, 200, 400, 10000}) {
    int64_t end = store_->elements();
    for (const GradientBucket& bucket : PlanBuckets(*store_, bytes)) {
      EXPECT_EQ(bucket.range.end, end) << bytes;
      // Each unit is a segment here.
      EXPECT_EQ(bucket.range.begin, store_->shard_begin(bucket.last_unit));
      end = bucket.range.begin;
    }
    EXPECT_EQ(end, 0) << bytes;
  }
}

}  // namespace
}  // namespace lockstep
