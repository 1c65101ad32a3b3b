#include "worker/dist/reduction.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

float Reduce(const std::vector<float>& values, ReduceOp op) {
  std::vector<const void*> inputs;
  for (const float& value : values) inputs.push_back(&value);
  float out = 0;
  ReduceInOrder(inputs, &out, 1, DType::kFloat32, op);
  return out;
}

uint16_t ReduceBFloat16(const std::vector<uint16_t>& values, ReduceOp op) {
  std::vector<const void*> inputs;
  for (const uint16_t& value : values) inputs.push_back(&value);
  uint16_t out = 0;
  ReduceInOrder(inputs, &out, 1, DType::kBFloat16, op);
  return out;
}

TEST(ReductionTest, SumsFromLeftToRight) {
  // Only from the left does the small one get lost.
  EXPECT_EQ(Reduce({1.0f, 1e8f, -1e8f}, ReduceOp::kSum), 0.0f);
  EXPECT_EQ(Reduce({1e8f, -1e8f, 1.0f}, ReduceOp::kSum), 1.0f);
}

TEST(ReductionTest, MaximumOfInfinitiesAndNan) {
  EXPECT_EQ(Reduce({1.0f, 3.0f, 2.0f}, ReduceOp::kMax), 3.0f);
  EXPECT_EQ(Reduce({-kInfinity, -5.0f}, ReduceOp::kMax), -5.0f);
  EXPECT_TRUE(std::isnan(Reduce({kNan, 1.0f, 2.0f}, ReduceOp::kMax)));
  EXPECT_TRUE(std::isnan(Reduce({1.0f, kNan, 2.0f}, ReduceOp::kMax)));
  EXPECT_TRUE(std::isnan(Reduce({1.0f, 2.0f, kNan}, ReduceOp::kMax)));
}

TEST(ReductionTest, BFloat16IsSummedInFp32AndRoundedOnce) {
  // 256 + 1 + 1: one at a time, each 1 would be lost in bf16 (ulp 2, ties to
  // even).
  EXPECT_EQ(ReduceBFloat16({0x4380, 0x3f80, 0x3f80}, ReduceOp::kSum), 0x4381);
  // 256 + 1 is a tie: to even.
  EXPECT_EQ(ReduceBFloat16({0x4380, 0x3f80}, ReduceOp::kSum), 0x4380);
  EXPECT_EQ(ReduceBFloat16({0x4381, 0x3f80}, ReduceOp::kSum), 0x4382);
}

TEST(ReductionTest, BFloat16KeepsNanAndInfinity) {
  EXPECT_EQ(ReduceBFloat16({0x7f80, 0x3f80}, ReduceOp::kSum), 0x7f80);
  const uint16_t nan = ReduceBFloat16({0x7f80, 0xff80}, ReduceOp::kSum);
  EXPECT_EQ(nan & 0x7f80, 0x7f80);
  EXPECT_NE(nan & 0x007f, 0);
}

TEST(ReductionTest, OutputMayBeAnyInput) {
  constexpr int64_t kCount = 3000;
  for (int aliased : {0, 1, 2}) {
    std::vector<std::vector<float>> inputs(3, std::vector<float>(kCount));
    for (int k = 0; k < 3; ++k) {
      for (int64_t i = 0; i < kCount; ++i) inputs[k][i] = (k + 1) * i;
    }
    ReduceInOrder({inputs[0].data(), inputs[1].data(), inputs[2].data()},
                  inputs[aliased].data(), kCount, DType::kFloat32,
                  ReduceOp::kSum);
    for (int64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(inputs[aliased][i], 6.0f * i) << i;
    }
  }
}

}  // namespace
}  // namespace lockstep
