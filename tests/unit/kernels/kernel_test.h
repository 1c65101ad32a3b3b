// What kernel tests share: matrices of doubles, their way to a device and back,
// and a fixture that runs an op on one and on two threads at each level.
#ifndef LOCKSTEP_TESTS_UNIT_KERNELS_KERNEL_TEST_H_
#define LOCKSTEP_TESTS_UNIT_KERNELS_KERNEL_TEST_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/device.h"
#include "kernels/owned_tensor.h"
#include "kernels/tensor.h"

namespace lockstep {

struct Matrix {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<double> values;

  Matrix() = default;
  Matrix(int64_t rows, int64_t cols, double value = 0.0)
      : rows(rows), cols(cols), values(rows * cols, value) {}
  double& operator()(int64_t row, int64_t col) {
    return values[row * cols + col];
  }
  double operator()(int64_t row, int64_t col) const {
    return values[row * cols + col];
  }
};

// The value as `dtype` stores it.
double Rounded(double value, DType dtype);
// Uniform in [-scale, scale], rounded to `dtype`; a function of its arguments.
Matrix RandomMatrix(int64_t rows, int64_t cols, DType dtype, uint64_t seed,
                    double scale = 1.0);

// A matrix in device memory. Padding is filled with NaN, which a kernel that
// reads it spreads.
OwnedTensor Upload(Stream& stream, const Matrix& matrix, DType dtype,
                   RowPadding padding = RowPadding::kPadded);
// The same as one dim.
OwnedTensor UploadVector(Stream& stream, const std::vector<double>& values,
                         DType dtype);
OwnedTensor UploadInts(Stream& stream, const std::vector<int32_t>& values,
                       DType dtype = DType::kInt32);
// An output, filled with NaN.
OwnedTensor Empty(Stream& stream, int64_t rows, int64_t cols, DType dtype,
                  RowPadding padding = RowPadding::kPadded);
OwnedTensor EmptyVector(Stream& stream, int64_t count, DType dtype);
Matrix Download(const Tensor& tensor);

// |got - want| <= tolerance * max(largest |want| of the matrix, floor), entry
// by entry. `floor` is the size of the terms where they may cancel altogether.
::testing::AssertionResult Near(const Matrix& got, const Matrix& want,
                                double tolerance, double floor = 0.0);
// |got - want| <= tolerance * max(|want|, floor), entry by entry.
::testing::AssertionResult NearEach(const Matrix& got, const Matrix& want,
                                    double tolerance, double floor);

// d/dx of the sum of weights * f(x), by central differences.
Matrix DifferenceGradient(const std::function<Matrix(const Matrix&)>& f,
                          const Matrix& x, const Matrix& weights);

struct KernelCase {
  CpuLevel level;
  DType dtype;
};
std::string CaseName(const ::testing::TestParamInfo<KernelCase>& info);
// Each level that this host runs, with both float types.
std::vector<KernelCase> AllCases();
std::vector<KernelCase> AllLevels();  // fp32 only

class KernelTest : public ::testing::TestWithParam<KernelCase> {
 protected:
  DType dtype() const { return GetParam().dtype; }

  // Runs `body`, which returns an op's results, on a device of one thread and
  // on one of two: the results must be equal bit for bit.
  using Body = std::function<std::vector<Matrix>(Stream&)>;
  std::vector<Matrix> Run(const Body& body) const;
};

std::unique_ptr<Device> MakeDevice(CpuLevel level, int threads,
                                   int64_t limit_bytes = 0);

#define INSTANTIATE_KERNEL_TEST(suite) \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::ValuesIn(AllCases()), CaseName)
#define INSTANTIATE_FP32_KERNEL_TEST(suite) \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::ValuesIn(AllLevels()), CaseName)

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_KERNELS_KERNEL_TEST_H_
