#include "kernels/ops/elementwise.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/testing/tolerances.h"
#include "tests/unit/kernels/kernel_test.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Tolerance;

struct Size {
  int64_t rows, cols;
};
// Tails of each vector length, one row, one column, and one size that is worth
// two threads.
const std::vector<Size> kSizes = {{1, 1},  {3, 7},   {5, 16},   {4, 33},
                                  {7, 79}, {2, 256}, {301, 131}};

class ElementwiseTest : public KernelTest {};
INSTANTIATE_KERNEL_TEST(ElementwiseTest);

Matrix Map(const Matrix& x, const std::function<double(double)>& f) {
  Matrix y = x;
  for (double& value : y.values) value = f(value);
  return y;
}

double Gelu(double x) {
  const double root = std::sqrt(2.0 / M_PI);
  return 0.5 * x * (1.0 + std::tanh(root * (x + 0.044715 * x * x * x)));
}
double Silu(double x) { return x / (1.0 + std::exp(-x)); }

Matrix Swiglu(const Matrix& gate_up) {
  const int64_t width = gate_up.cols / 2;
  Matrix out(gate_up.rows, width);
  for (int64_t row = 0; row < out.rows; ++row) {
    for (int64_t col = 0; col < width; ++col) {
      out(row, col) = Silu(gate_up(row, col)) * gate_up(row, width + col);
    }
  }
  return out;
}

TEST_P(ElementwiseTest, ZeroAndFillSetEveryElementAndNoPadding) {
  for (const Size& size : kSizes) {
    const auto got = Run([&](Stream& stream) {
      OwnedTensor zero = Empty(stream, size.rows, size.cols, dtype());
      OwnedTensor half = Empty(stream, size.rows, size.cols, dtype());
      EXPECT_OK(ops::Zero(stream, zero));
      EXPECT_OK(ops::Fill(stream, 0.5f, half));
      const int64_t stride = half->row_stride();
      const Matrix memory = Download(
          Tensor(half->raw(), dtype(), {size.rows, stride}, DeviceKind::kCpu));
      for (int64_t col = size.cols; col < stride; ++col) {
        EXPECT_TRUE(std::isnan(memory(0, col))) << "padding was written";
      }
      return std::vector<Matrix>{Download(zero), Download(half)};
    });
    EXPECT_TRUE(Near(got[0], Matrix(size.rows, size.cols, 0.0), 0.0));
    EXPECT_TRUE(Near(got[1], Matrix(size.rows, size.cols, 0.5), 0.0));
  }
}

TEST_P(ElementwiseTest, AddRoundsTheSumOnce) {
  for (const Size& size : kSizes) {
    const Matrix a = RandomMatrix(size.rows, size.cols, dtype(), 1);
    const Matrix b = RandomMatrix(size.rows, size.cols, dtype(), 2);
    const auto got = Run([&](Stream& stream) {
      OwnedTensor x = Upload(stream, a, dtype());
      OwnedTensor y = Upload(stream, b, dtype(), RowPadding::kDense);
      EXPECT_OK(ops::Add(stream, x, y, x));
      return std::vector<Matrix>{Download(x)};
    });
    Matrix want = a;
    for (size_t i = 0; i < want.values.size(); ++i) {
      want.values[i] = Rounded(a.values[i] + b.values[i], dtype());
    }
    EXPECT_TRUE(Near(got[0], want, 0.0));
  }
}

TEST_P(ElementwiseTest, GeluForwardAndBackwardMatchTheFormula) {
  for (const Size& size : kSizes) {
    const Matrix x = RandomMatrix(size.rows, size.cols, dtype(), 3, 6.0);
    const Matrix dy = RandomMatrix(size.rows, size.cols, dtype(), 4);
    const auto got = Run([&](Stream& stream) {
      OwnedTensor in = Upload(stream, x, dtype());
      OwnedTensor grad = Upload(stream, dy, dtype());
      OwnedTensor out = Empty(stream, size.rows, size.cols, dtype());
      EXPECT_OK(ops::GeluForward(stream, in, out));
      EXPECT_OK(ops::GeluBackward(stream, grad, in, grad));  // in place
      return std::vector<Matrix>{Download(out), Download(grad)};
    });
    // Absolute near 0: of x e^-2u the exponent's rounding is what counts, 2u up
    // to 30 there.
    EXPECT_TRUE(NearEach(got[0], Map(x, Gelu), Tolerance(dtype()), 0.5));
    Matrix slope = Map(x, [](double v) {
      const double h = 1e-4;
      return (Gelu(v + h) - Gelu(v - h)) / (2 * h);
    });
    for (size_t i = 0; i < slope.values.size(); ++i) {
      slope.values[i] *= dy.values[i];
    }
    EXPECT_TRUE(NearEach(got[1], slope, Tolerance(dtype()), 1.0));
  }
}

TEST_P(ElementwiseTest, GeluKeepsItsLimitsAndNan) {
  const Matrix x = [] {
    Matrix m(1, 5);
    m.values = {-1e4, 1e4, -30.0, 0.0,
                std::numeric_limits<double>::quiet_NaN()};
    return m;
  }();
  const auto got = Run([&](Stream& stream) {
    OwnedTensor in = Upload(stream, x, dtype());
    OwnedTensor out = Empty(stream, 1, 5, dtype());
    OwnedTensor grad = Upload(stream, Matrix(1, 5, 1.0), dtype());
    EXPECT_OK(ops::GeluForward(stream, in, out));
    EXPECT_OK(ops::GeluBackward(stream, grad, in, grad));
    return std::vector<Matrix>{Download(out), Download(grad)};
  });
  EXPECT_NEAR(got[0].values[0], 0.0, 1e-30);
  EXPECT_EQ(got[0].values[1], Rounded(1e4, dtype()));
  EXPECT_NEAR(got[0].values[2], 0.0, 1e-30);
  EXPECT_EQ(got[0].values[3], 0.0);
  EXPECT_TRUE(std::isnan(got[0].values[4]));
  EXPECT_NEAR(got[1].values[0], 0.0, 1e-20);
  EXPECT_EQ(got[1].values[1], 1.0);
  EXPECT_EQ(got[1].values[3], 0.5);
  EXPECT_TRUE(std::isnan(got[1].values[4]));
}

TEST_P(ElementwiseTest, SwigluMatchesItsFormulaAndDifferences) {
  for (const Size& size : kSizes) {
    if (size.rows * size.cols > 600) continue;  // differences are slow
    const Matrix x = RandomMatrix(size.rows, 2 * size.cols, dtype(), 5, 3.0);
    const Matrix dy = RandomMatrix(size.rows, size.cols, dtype(), 6);
    const auto got = Run([&](Stream& stream) {
      OwnedTensor in = Upload(stream, x, dtype());
      OwnedTensor grad = Upload(stream, dy, dtype());
      OwnedTensor out = Empty(stream, size.rows, size.cols, dtype());
      EXPECT_OK(ops::SwigluForward(stream, in, out));
      EXPECT_OK(ops::SwigluBackward(stream, grad, in, in));  // in place
      return std::vector<Matrix>{Download(out), Download(in)};
    });
    EXPECT_TRUE(NearEach(got[0], Swiglu(x), Tolerance(dtype()), 0.1));
    EXPECT_TRUE(NearEach(got[1], DifferenceGradient(Swiglu, x, dy),
                         Tolerance(dtype()), 0.5));
  }
}

TEST_P(ElementwiseTest, SwigluOfManyRowsIsTheSameOnTwoThreads) {
  const Matrix x = RandomMatrix(301, 2 * 131, dtype(), 7, 3.0);
  const auto got = Run([&](Stream& stream) {
    OwnedTensor in = Upload(stream, x, dtype());
    OwnedTensor out = Empty(stream, 301, 131, dtype());
    EXPECT_OK(ops::SwigluForward(stream, in, out));
    return std::vector<Matrix>{Download(out)};
  });
  EXPECT_TRUE(NearEach(got[0], Swiglu(x), Tolerance(dtype()), 0.1));
}

Matrix Rotate(const Matrix& x, int64_t head_width, double theta,
              const std::vector<int32_t>& position, double direction) {
  Matrix y = x;
  const int64_t half = head_width / 2;
  for (int64_t row = 0; row < x.rows; ++row) {
    for (int64_t head = 0; head < x.cols; head += head_width) {
      for (int64_t i = 0; i < half; ++i) {
        const double angle =
            direction * position[row] * std::pow(theta, -2.0 * i / head_width);
        const double a = x(row, head + i), b = x(row, head + half + i);
        y(row, head + i) = a * std::cos(angle) - b * std::sin(angle);
        y(row, head + half + i) = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }
  return y;
}

TEST_P(ElementwiseTest, RotaryTurnsPairsByPositionAndBack) {
  for (int64_t head_width : {2, 6, 32, 64, 90}) {
    const int64_t rows = 120, heads = 3;
    const Matrix x = RandomMatrix(rows, heads * head_width, dtype(), 8);
    std::vector<int32_t> position(rows);
    for (int64_t row = 0; row < rows; ++row) {
      position[row] = static_cast<int32_t>(row < 60 ? row : 1100 * row);
    }
    const auto got = Run([&](Stream& stream) {
      OwnedTensor in = Upload(stream, x, dtype());
      OwnedTensor at = UploadInts(stream, position);
      EXPECT_OK(ops::Rotary(stream, in, head_width, 10000.0, at,
                            ops::RotaryDirection::kForward));
      Matrix forward = Download(in);
      EXPECT_OK(ops::Rotary(stream, in, head_width, 10000.0, at,
                            ops::RotaryDirection::kBackward));
      return std::vector<Matrix>{forward, Download(in)};
    });
    EXPECT_TRUE(NearEach(got[0], Rotate(x, head_width, 10000.0, position, 1.0),
                         Tolerance(dtype()), 1.5))
        << "head width " << head_width;
    // Of the rounded result, so that two roundings don't add up.
    EXPECT_TRUE(NearEach(got[1],
                         Rotate(got[0], head_width, 10000.0, position, -1.0),
                         Tolerance(dtype()), 1.5));
  }
}

class ConvertTest : public KernelTest {};
INSTANTIATE_FP32_KERNEL_TEST(ConvertTest);

TEST_P(ConvertTest, RoundsToNearestEvenAndWidensExactly) {
  // Halfway cases go to the even neighbour; NaN and infinities stay.
  const double ulp = 1.0 / 128;
  Matrix x(1, 9);
  x.values = {1.0 + 0.5 * ulp,
              1.0 + 1.5 * ulp,
              1.0 + 0.5001 * ulp,
              -1.0 - 0.5 * ulp,
              3.4e38,
              std::numeric_limits<double>::infinity(),
              -std::numeric_limits<double>::infinity(),
              std::numeric_limits<double>::quiet_NaN(),
              -0.0};
  const auto got = Run([&](Stream& stream) {
    OwnedTensor in = Upload(stream, x, DType::kFloat32);
    OwnedTensor narrow = Empty(stream, 1, 9, DType::kBFloat16);
    OwnedTensor wide = Empty(stream, 1, 9, DType::kFloat32);
    EXPECT_OK(ops::Convert(stream, in, narrow));
    EXPECT_OK(ops::Convert(stream, narrow, wide));
    EXPECT_TRUE(Download(narrow).values[0] == Download(wide).values[0]);
    return std::vector<Matrix>{Download(wide)};
  });
  const std::vector<double>& y = got[0].values;
  EXPECT_EQ(y[0], 1.0);
  EXPECT_EQ(y[1], 1.0 + 2 * ulp);
  EXPECT_EQ(y[2], 1.0 + ulp);
  EXPECT_EQ(y[3], -1.0);
  EXPECT_TRUE(std::isinf(y[4]));
  EXPECT_EQ(y[5], std::numeric_limits<double>::infinity());
  EXPECT_EQ(y[6], -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(y[7]));
  EXPECT_TRUE(y[8] == 0.0 && std::signbit(y[8]));
}

TEST_P(ConvertTest, ConvertsEverySizeBothWays) {
  for (const Size& size : kSizes) {
    const Matrix x = RandomMatrix(size.rows, size.cols, DType::kFloat32, 9);
    const auto got = Run([&](Stream& stream) {
      OwnedTensor in = Upload(stream, x, DType::kFloat32);
      OwnedTensor narrow =
          Empty(stream, size.rows, size.cols, DType::kBFloat16);
      OwnedTensor wide = Empty(stream, size.rows, size.cols, DType::kFloat32,
                               RowPadding::kDense);
      EXPECT_OK(ops::Convert(stream, in, narrow));
      EXPECT_OK(ops::Convert(stream, narrow, wide));
      return std::vector<Matrix>{Download(wide)};
    });
    EXPECT_TRUE(Near(
        got[0], Map(x, [](double v) { return Rounded(v, DType::kBFloat16); }),
        0.0));
  }
}

TEST_P(ConvertTest, ScaleMultipliesInPlace) {
  for (const Size& size : kSizes) {
    const Matrix x = RandomMatrix(size.rows, size.cols, DType::kFloat32, 10);
    const auto got = Run([&](Stream& stream) {
      OwnedTensor in = Upload(stream, x, DType::kFloat32);
      EXPECT_OK(ops::Scale(stream, 0.25f, in));
      return std::vector<Matrix>{Download(in)};
    });
    EXPECT_TRUE(Near(got[0], Map(x, [](double v) { return v / 4; }), 0.0));
  }
}

TEST_P(ConvertTest, SubnormalResultsAreFlushedToZero) {
  const auto got = Run([&](Stream& stream) {
    OwnedTensor x = Upload(stream, Matrix(200, 200, 1e-30), DType::kFloat32);
    EXPECT_OK(ops::Scale(stream, 1e-10f, x));
    return std::vector<Matrix>{Download(x)};
  });
  EXPECT_TRUE(Near(got[0], Matrix(200, 200, 0.0), 0.0));
}

}  // namespace
}  // namespace lockstep
