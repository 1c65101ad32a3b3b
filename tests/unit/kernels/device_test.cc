#include "kernels/device.h"

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/cpu/parallel_for.h"
#include "kernels/owned_tensor.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/kernels/kernel_test.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;

TEST(CpuDeviceTest, IsOneOfItsKindInAProcess) {
  std::unique_ptr<Device> first = MakeDevice(CpuLevel::kV2, 1);
  EXPECT_THAT(MakeCpuDevice({}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       ::testing::HasSubstr("has one already")));
  first.reset();
  EXPECT_OK(MakeCpuDevice({}));
}

TEST(CpuDeviceTest, RefusesOptionsThatMakeNoSense) {
  EXPECT_THAT(MakeCpuDevice({.threads = 0}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("0 threads")));
  EXPECT_THAT(MakeCpuDevice({.memory_limit_bytes = -5}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("-5 bytes")));
  if (DetectCpuLevel() < CpuLevel::kV4) {
    EXPECT_THAT(MakeCpuDevice({.cpu_level = CpuLevel::kV4}).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         ::testing::HasSubstr("x86-64-v4 asked for")));
  }
  EXPECT_OK(MakeCpuDevice({}));  // a refused device is not in the way
}

TEST(CpuDeviceTest, LimitHoldsForTensors) {
  std::unique_ptr<Device> device = MakeDevice(CpuLevel::kV2, 1, 10000);
  EXPECT_EQ(device->kind(), DeviceKind::kCpu);
  Stream& stream = device->stream();
  ASSERT_OK_AND_ASSIGN(
      OwnedTensor tensor,
      AllocateTensor(stream, DType::kFloat32, {10, 100},
                     MemoryCategory::kParameter, RowPadding::kDense));
  EXPECT_EQ(device->allocator().Use().total.live_bytes, 4000);
  EXPECT_THAT(AllocateTensor(stream, DType::kFloat32, {16, 100},
                             MemoryCategory::kGradient, RowPadding::kDense)
                  .status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       ::testing::HasSubstr("gradient wants 6400 bytes")));
  tensor.Reset();
  EXPECT_EQ(device->allocator().Use().total.live_bytes, 0);
}

TEST(AllocateTensorTest, PadsRowsWhereAsked) {
  std::unique_ptr<Device> device = MakeDevice(CpuLevel::kV2, 1);
  Stream& stream = device->stream();
  ASSERT_OK_AND_ASSIGN(
      OwnedTensor padded,
      AllocateTensor(stream, DType::kFloat32, {2, 3, 1024},
                     MemoryCategory::kActivation, RowPadding::kPadded));
  EXPECT_EQ(padded->row_stride(), 1040);
  EXPECT_EQ(padded->rows(), 6);
  ASSERT_OK_AND_ASSIGN(
      OwnedTensor dense,
      AllocateTensor(stream, DType::kBFloat16, {5, 7},
                     MemoryCategory::kActivation, RowPadding::kDense));
  EXPECT_TRUE(dense->dense());
  ASSERT_OK_AND_ASSIGN(
      OwnedTensor empty,
      AllocateTensor(stream, DType::kFloat32, {0, 7},
                     MemoryCategory::kActivation, RowPadding::kDense));
  EXPECT_EQ(empty->elements(), 0);
  EXPECT_FALSE(empty.empty());
}

TEST(ComputePoolTest, RangesCoverAllOnceAndItemsRunOnce) {
  for (int threads : {1, 2, 3}) {
    cpu::ComputePool pool(threads);
    for (int64_t count : {0, 1, 2, 7, 64, 1000}) {
      for (int64_t granularity : {1, 3, 64, 5000}) {
        std::vector<int> seen(count);
        pool.Ranges(count, granularity, [&](int64_t begin, int64_t end) {
          EXPECT_EQ(begin % granularity, 0);
          for (int64_t i = begin; i < end; ++i) ++seen[i];
        });
        EXPECT_EQ(seen, std::vector<int>(count, 1));
      }
      std::vector<int> seen(count);
      pool.Items(count, [&](int64_t item, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        ++seen[item];
      });
      EXPECT_EQ(seen, std::vector<int>(count, 1));
    }
  }
}

TEST(ComputePoolTest, EveryThreadFlushesSubnormalsAlsoForANewCaller) {
  const auto flushes = [] {
    cpu::ComputePool pool(2);
    std::vector<float> product(2);
    pool.Ranges(2, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        volatile float small = 1e-30f;
        product[i] = small * 1e-10f;
      }
    });
    EXPECT_EQ(product, (std::vector<float>{0.0f, 0.0f}));
  };
  flushes();
  std::thread(flushes).join();
}

}  // namespace
}  // namespace lockstep
