#include "tests/unit/kernels/kernel_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "common/log.h"
#include "tests/testing/tolerances.h"

namespace lockstep {
namespace {

uint16_t ToBf16Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float FromBf16Bits(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

void Put(void* data, int64_t index, DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat32:
      static_cast<float*>(data)[index] = static_cast<float>(value);
      break;
    case DType::kBFloat16:
      static_cast<uint16_t*>(data)[index] =
          ToBf16Bits(static_cast<float>(value));
      break;
    case DType::kInt32:
      static_cast<int32_t*>(data)[index] = static_cast<int32_t>(value);
      break;
    case DType::kUInt32:
      static_cast<uint32_t*>(data)[index] = static_cast<uint32_t>(value);
      break;
  }
}

double Get(const void* data, int64_t index, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return static_cast<const float*>(data)[index];
    case DType::kBFloat16:
      return FromBf16Bits(static_cast<const uint16_t*>(data)[index]);
    case DType::kInt32:
      return static_cast<const int32_t*>(data)[index];
    case DType::kUInt32:
      return static_cast<const uint32_t*>(data)[index];
  }
  return 0.0;
}

OwnedTensor Allocate(Stream& stream, DType dtype, Shape shape,
                     RowPadding padding) {
  auto tensor = AllocateTensor(stream, dtype, shape,
                               MemoryCategory::kActivation, padding);
  CHECK(tensor.ok()) << tensor.status().ToString();
  if (dtype == DType::kFloat32 || dtype == DType::kBFloat16) {
    const Tensor& t = tensor->get();
    for (int64_t i = 0; i < t.rows() * t.row_stride(); ++i) {
      Put(t.raw(), i, dtype, std::numeric_limits<double>::quiet_NaN());
    }
  }
  return *std::move(tensor);
}

::testing::AssertionResult Compare(
    const Matrix& got, const Matrix& want,
    const std::function<double(double)>& allowed) {
  if (got.rows != want.rows || got.cols != want.cols) {
    return ::testing::AssertionFailure()
           << "(" << got.rows << ", " << got.cols << ") for (" << want.rows
           << ", " << want.cols << ")";
  }
  for (int64_t row = 0; row < got.rows; ++row) {
    for (int64_t col = 0; col < got.cols; ++col) {
      const double error = std::abs(got(row, col) - want(row, col));
      if (got(row, col) == want(row, col)) continue;  // infinities too
      if (!(error <= allowed(want(row, col)))) {
        return ::testing::AssertionFailure()
               << "at (" << row << ", " << col << ") got " << got(row, col)
               << ", want " << want(row, col) << ", off by " << error
               << " where " << allowed(want(row, col)) << " is allowed";
      }
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace

double Rounded(double value, DType dtype) {
  const float single = static_cast<float>(value);
  return dtype == DType::kBFloat16 ? FromBf16Bits(ToBf16Bits(single)) : single;
}

Matrix RandomMatrix(int64_t rows, int64_t cols, DType dtype, uint64_t seed,
                    double scale) {
  std::mt19937_64 random(seed * 1000003 + rows * 1009 + cols);
  std::uniform_real_distribution<double> uniform(-scale, scale);
  Matrix matrix(rows, cols);
  for (double& value : matrix.values) value = Rounded(uniform(random), dtype);
  return matrix;
}

OwnedTensor Upload(Stream& stream, const Matrix& matrix, DType dtype,
                   RowPadding padding) {
  OwnedTensor tensor =
      Allocate(stream, dtype, {matrix.rows, matrix.cols}, padding);
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t col = 0; col < matrix.cols; ++col) {
      Put(tensor->raw(), row * tensor->row_stride() + col, dtype,
          matrix(row, col));
    }
  }
  return tensor;
}

OwnedTensor UploadVector(Stream& stream, const std::vector<double>& values,
                         DType dtype) {
  OwnedTensor tensor =
      EmptyVector(stream, static_cast<int64_t>(values.size()), dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    Put(tensor->raw(), i, dtype, values[i]);
  }
  return tensor;
}

OwnedTensor UploadInts(Stream& stream, const std::vector<int32_t>& values,
                       DType dtype) {
  return UploadVector(stream, std::vector<double>(values.begin(), values.end()),
                      dtype);
}

OwnedTensor Empty(Stream& stream, int64_t rows, int64_t cols, DType dtype,
                  RowPadding padding) {
  return Allocate(stream, dtype, {rows, cols}, padding);
}

OwnedTensor EmptyVector(Stream& stream, int64_t count, DType dtype) {
  return Allocate(stream, dtype, {count}, RowPadding::kDense);
}

Matrix Download(const Tensor& tensor) {
  Matrix matrix(tensor.rows(), tensor.cols());
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t col = 0; col < matrix.cols; ++col) {
      matrix(row, col) =
          Get(tensor.raw(), row * tensor.row_stride() + col, tensor.dtype());
    }
  }
  return matrix;
}

::testing::AssertionResult Near(const Matrix& got, const Matrix& want,
                                double tolerance, double floor) {
  double largest = floor;
  for (double value : want.values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return Compare(got, want, [&](double) { return tolerance * largest; });
}

::testing::AssertionResult NearEach(const Matrix& got, const Matrix& want,
                                    double tolerance, double floor) {
  return Compare(got, want, [&](double value) {
    return tolerance * std::max(std::abs(value), floor);
  });
}

Matrix DifferenceGradient(const std::function<Matrix(const Matrix&)>& f,
                          const Matrix& x, const Matrix& weights) {
  const auto loss = [&](const Matrix& at) {
    const Matrix y = f(at);
    double sum = 0.0;
    for (size_t i = 0; i < y.values.size(); ++i) {
      sum += y.values[i] * weights.values[i];
    }
    return sum;
  };
  Matrix gradient(x.rows, x.cols);
  Matrix moved = x;
  for (size_t i = 0; i < x.values.size(); ++i) {
    moved.values[i] = x.values[i] + testing::kDifferenceStep;
    const double above = loss(moved);
    moved.values[i] = x.values[i] - testing::kDifferenceStep;
    const double below = loss(moved);
    moved.values[i] = x.values[i];
    gradient.values[i] = (above - below) / (2 * testing::kDifferenceStep);
  }
  return gradient;
}

std::string CaseName(const ::testing::TestParamInfo<KernelCase>& info) {
  return "V" + std::to_string(static_cast<int>(info.param.level)) +
         (info.param.dtype == DType::kFloat32 ? "_Fp32" : "_Bf16");
}

std::vector<KernelCase> AllLevels() {
  std::vector<KernelCase> cases;
  for (CpuLevel level : {CpuLevel::kV2, CpuLevel::kV3, CpuLevel::kV4}) {
    if (level <= DetectCpuLevel()) cases.push_back({level, DType::kFloat32});
  }
  return cases;
}

std::vector<KernelCase> AllCases() {
  std::vector<KernelCase> cases;
  for (const KernelCase& level : AllLevels()) {
    cases.push_back(level);
    cases.push_back({level.level, DType::kBFloat16});
  }
  return cases;
}

std::unique_ptr<Device> MakeDevice(CpuLevel level, int threads,
                                   int64_t limit_bytes) {
  auto device = MakeCpuDevice({.memory_limit_bytes = limit_bytes,
                               .threads = threads,
                               .cpu_level = level});
  CHECK(device.ok()) << device.status().ToString();
  return *std::move(device);
}

std::vector<Matrix> KernelTest::Run(const Body& body) const {
  std::vector<Matrix> first;
  for (int threads : {1, 2}) {
    std::unique_ptr<Device> device = MakeDevice(GetParam().level, threads);
    std::vector<Matrix> results = body(device->stream());
    if (threads == 1) {
      first = std::move(results);
      continue;
    }
    EXPECT_EQ(results.size(), first.size());
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(std::memcmp(results[i].values.data(), first[i].values.data(),
                            first[i].values.size() * sizeof(double)),
                0)
          << "result " << i << " hangs on the number of threads";
    }
  }
  return first;
}

}  // namespace lockstep
