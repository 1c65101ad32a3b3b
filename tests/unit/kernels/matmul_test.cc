#include "kernels/ops/matmul.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/cpu_level.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/cpu_stream.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_allocator.h"
#include "tests/testing/tolerances.h"
#include "tests/unit/kernels/kernel_test.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Tolerance;

struct Product {
  int64_t m, n, k;
};
// Some pass the extents at which bf16 operands are widened in blocks.
const std::vector<Product> kProducts = {
    {1, 1, 1},   {3, 5, 7},    {17, 33, 19}, {64, 48, 80}, {1, 96, 64},
    {50, 1, 30}, {2100, 3, 9}, {5, 2100, 6}, {3, 4, 4200}};

Matrix Transposed(const Matrix& x) {
  Matrix y(x.cols, x.rows);
  for (int64_t row = 0; row < x.rows; ++row) {
    for (int64_t col = 0; col < x.cols; ++col) y(col, row) = x(row, col);
  }
  return y;
}

Matrix Multiply(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.cols);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.cols; ++k) {
      for (int64_t j = 0; j < b.cols; ++j) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

// Checks all transposes, both output types, plain, with bias and accumulating.
void CheckProduct(Stream& stream, DType dtype, const Product& size) {
  const Matrix a = RandomMatrix(size.m, size.k, dtype, 1);
  const Matrix b = RandomMatrix(size.k, size.n, dtype, 2);
  const Matrix product = Multiply(a, b);
  const Matrix bias = RandomMatrix(1, size.n, DType::kFloat32, 3);
  for (int turns = 0; turns < 4; ++turns) {
    const Transpose turn_a =
        (turns & 1) != 0 ? Transpose::kYes : Transpose::kNo;
    const Transpose turn_b =
        (turns & 2) != 0 ? Transpose::kYes : Transpose::kNo;
    // Activations are padded, weights dense.
    OwnedTensor x =
        Upload(stream, turn_a == Transpose::kYes ? Transposed(a) : a, dtype);
    OwnedTensor w =
        Upload(stream, turn_b == Transpose::kYes ? Transposed(b) : b, dtype,
               RowPadding::kDense);
    OwnedTensor bias_row = UploadVector(stream, bias.values, DType::kFloat32);
    for (DType out_type : {DType::kFloat32, dtype}) {
      SCOPED_TRACE(::testing::Message()
                   << size.m << " x " << size.n << " x " << size.k << ", turns "
                   << turns << ", out " << Name(out_type));
      OwnedTensor out = Empty(stream, size.m, size.n, out_type);
      ASSERT_OK(ops::Matmul(stream, x, turn_a, w, turn_b, Tensor(),
                            Accumulate::kNo, out));
      EXPECT_TRUE(Near(Download(out), product, Tolerance(out_type, size.k)));

      Matrix biased = product;
      for (int64_t i = 0; i < size.m; ++i) {
        for (int64_t j = 0; j < size.n; ++j) biased(i, j) += bias(0, j);
      }
      ASSERT_OK(ops::Matmul(stream, x, turn_a, w, turn_b, bias_row,
                            Accumulate::kNo, out));
      EXPECT_TRUE(Near(Download(out), biased, Tolerance(out_type, size.k + 1)));

      const Matrix start = RandomMatrix(size.m, size.n, out_type, 4);
      Matrix added = product;
      for (size_t i = 0; i < added.values.size(); ++i) {
        added.values[i] += start.values[i];
      }
      out = Upload(stream, start, out_type);
      ASSERT_OK(ops::Matmul(stream, x, turn_a, w, turn_b, Tensor(),
                            Accumulate::kYes, out));
      EXPECT_TRUE(Near(Download(out), added, Tolerance(out_type, size.k + 1)));
    }
  }
}

class MatmulTest : public KernelTest {};
INSTANTIATE_KERNEL_TEST(MatmulTest);

TEST_P(MatmulTest, MatchesReferenceInEveryArrangement) {
  std::unique_ptr<Device> device = MakeDevice(GetParam().level, 2);
  for (const Product& size : kProducts) {
    CheckProduct(device->stream(), dtype(), size);
  }
}

TEST_P(MatmulTest, MatchesReferenceOverSeveralBlocks) {
  const Product size = {2050, 2051, 3};
  const Matrix a = RandomMatrix(size.m, size.k, dtype(), 1);
  const Matrix b = RandomMatrix(size.k, size.n, dtype(), 2);
  std::unique_ptr<Device> device = MakeDevice(GetParam().level, 2);
  Stream& stream = device->stream();
  OwnedTensor x = Upload(stream, a, dtype());
  OwnedTensor w = Upload(stream, b, dtype());
  OwnedTensor out = Empty(stream, size.m, size.n, dtype());
  ASSERT_OK(ops::Matmul(stream, x, Transpose::kNo, w, Transpose::kNo, Tensor(),
                        Accumulate::kNo, out));
  EXPECT_TRUE(Near(Download(out), Multiply(a, b), Tolerance(dtype(), size.k)));
}

TEST_P(MatmulTest, ProductOverNothingIsBiasOrOutput) {
  const Matrix start = RandomMatrix(3, 4, dtype(), 5);
  std::unique_ptr<Device> device = MakeDevice(GetParam().level, 1);
  Stream& stream = device->stream();
  OwnedTensor a = Empty(stream, 3, 0, dtype(), RowPadding::kDense);
  OwnedTensor b = Empty(stream, 4, 0, dtype(), RowPadding::kDense);
  OwnedTensor bias = UploadVector(stream, {1, 2, 3, 4}, DType::kFloat32);
  OwnedTensor out = Upload(stream, start, dtype());
  ASSERT_OK(ops::Matmul(stream, a, Transpose::kNo, b, Transpose::kYes, Tensor(),
                        Accumulate::kYes, out));
  EXPECT_TRUE(Near(Download(out), start, 0.0));
  ASSERT_OK(ops::Matmul(stream, a, Transpose::kNo, b, Transpose::kYes, bias,
                        Accumulate::kNo, out));
  EXPECT_EQ(Download(out)(2, 3), 4.0);
  ASSERT_OK(ops::Matmul(stream, a, Transpose::kNo, b, Transpose::kYes, Tensor(),
                        Accumulate::kNo, out));
  EXPECT_TRUE(Near(Download(out), Matrix(3, 4, 0.0), 0.0));
}

TEST_P(MatmulTest, TwoRunsAreBitEqual) {
  std::unique_ptr<Device> device = MakeDevice(GetParam().level, 2);
  Stream& stream = device->stream();
  OwnedTensor a = Upload(stream, RandomMatrix(300, 200, dtype(), 6), dtype());
  OwnedTensor b = Upload(stream, RandomMatrix(250, 200, dtype(), 7), dtype());
  OwnedTensor first = Empty(stream, 300, 250, dtype());
  OwnedTensor second = Empty(stream, 300, 250, dtype());
  for (const Tensor& out : {first.get(), second.get()}) {
    ASSERT_OK(ops::Matmul(stream, a, Transpose::kNo, b, Transpose::kYes,
                          Tensor(), Accumulate::kNo, out));
  }
  EXPECT_EQ(Download(first).values, Download(second).values);
}

TEST_P(MatmulTest, GivesScratchBackAndReportsWhatDoesNotFit) {
  if (dtype() != DType::kBFloat16) GTEST_SKIP() << "fp32 takes no scratch";
  std::unique_ptr<Device> device =
      MakeDevice(GetParam().level, 1, int64_t{1} << 20);
  Stream& stream = device->stream();
  OwnedTensor a = Empty(stream, 300, 300, dtype());
  const int64_t before = device->allocator().Use().total.live_bytes;
  const absl::Status status =
      ops::Matmul(stream, a, Transpose::kNo, a, Transpose::kNo, Tensor(),
                  Accumulate::kNo, a);
  if (!status.ok()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(device->allocator().Use().total.live_bytes, before);
}

// The limit of oneDNN is set once in a process: each level gets one of its own.
class MatmulProcessTest : public ::testing::TestWithParam<KernelCase> {};
INSTANTIATE_KERNEL_TEST(MatmulProcessTest);

[[noreturn]] void ExitWithResult() {
  std::exit(::testing::Test::HasFailure() ? 1 : 0);
}

TEST_P(MatmulProcessTest, MatchesReferenceWithOneDnnAtThisLevel) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        std::unique_ptr<Device> device = MakeDevice(GetParam().level, 2);
        CheckProduct(device->stream(), GetParam().dtype, {70, 90, 50});
        ExitWithResult();
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Bf16MatmulTest, NativeProductsMatchReference) {
  if (DetectCpuLevel() < CpuLevel::kV4) GTEST_SKIP() << "needs AVX-512";
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        cpu::LimitOneDnn(CpuLevel::kV4, cpu::Bf16Product::kNative);
        testing::TestAllocator allocator;
        cpu::CpuStream stream(cpu::CpuBackend(), allocator,
                              cpu::KernelsOf(CpuLevel::kV4),
                              cpu::Bf16Product::kNative, 2);
        for (const Product& size : kProducts) {
          CheckProduct(stream, DType::kBFloat16, size);
        }
        // Each from the cache this time.
        CheckProduct(stream, DType::kBFloat16, kProducts[2]);
        EXPECT_EQ(allocator.Use().total.live_bytes, 0);
        ExitWithResult();
      },
      ::testing::ExitedWithCode(0), "");
}

class ColumnSumTest : public KernelTest {};
INSTANTIATE_KERNEL_TEST(ColumnSumTest);

TEST_P(ColumnSumTest, SumsRowsOfEveryColumn) {
  for (const auto& [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {5, 17}, {64, 128}, {65, 129}, {333, 300}, {0, 9}}) {
    const Matrix x = RandomMatrix(rows, cols, dtype(), 8);
    const Matrix start = RandomMatrix(1, cols, DType::kFloat32, 9);
    const auto got = Run([&, cols = cols](Stream& stream) {
      OwnedTensor in = Upload(stream, x, dtype());
      OwnedTensor out = EmptyVector(stream, cols, DType::kFloat32);
      OwnedTensor sum = UploadVector(stream, start.values, DType::kFloat32);
      EXPECT_OK(ops::ColumnSum(stream, in, Accumulate::kNo, out));
      EXPECT_OK(ops::ColumnSum(stream, in, Accumulate::kYes, sum));
      return std::vector<Matrix>{Download(out), Download(sum)};
    });
    Matrix want(1, cols), added = start;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; ++col) {
        want(0, col) += x(row, col);
        added(0, col) += x(row, col);
      }
    }
    EXPECT_TRUE(Near(got[0], want, Tolerance(DType::kFloat32, rows)));
    EXPECT_TRUE(Near(got[1], added, Tolerance(DType::kFloat32, rows)));
  }
}

}  // namespace
}  // namespace lockstep
