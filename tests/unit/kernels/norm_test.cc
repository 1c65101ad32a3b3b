#include "kernels/ops/norm.h"

#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/testing/tolerances.h"
#include "tests/unit/kernels/kernel_test.h"
#include "tests/unit/kernels/philox_reference.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Tolerance;

constexpr double kEpsilon = 1e-3;

struct Problem {
  NormKind kind;
  int64_t rows, cols;
};
// The small ones are differentiated by differences; 700 rows make blocks of
// weight gradients of several threads.
std::vector<Problem> Problems() {
  std::vector<Problem> problems;
  for (NormKind kind : {NormKind::kLayerNorm, NormKind::kRmsNorm}) {
    for (const auto& [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {3, 5}, {4, 16}, {2, 33}, {3, 70}, {700, 67}}) {
      problems.push_back({kind, rows, cols});
    }
  }
  return problems;
}

struct Reference {
  Matrix out, mean, rstd;
};

Reference Normalise(NormKind kind, const Matrix& x, const Matrix& weight,
                    const Matrix& bias) {
  Reference result = {x, Matrix(1, x.rows), Matrix(1, x.rows)};
  for (int64_t row = 0; row < x.rows; ++row) {
    double mean = 0.0, variance = 0.0;
    if (kind == NormKind::kLayerNorm) {
      for (int64_t col = 0; col < x.cols; ++col) mean += x(row, col);
      mean /= x.cols;
    }
    for (int64_t col = 0; col < x.cols; ++col) {
      variance += (x(row, col) - mean) * (x(row, col) - mean);
    }
    const double rstd = 1.0 / std::sqrt(variance / x.cols + kEpsilon);
    for (int64_t col = 0; col < x.cols; ++col) {
      result.out(row, col) = (x(row, col) - mean) * rstd * weight(0, col);
      if (kind == NormKind::kLayerNorm) result.out(row, col) += bias(0, col);
    }
    result.mean(0, row) = mean;
    result.rstd(0, row) = rstd;
  }
  return result;
}

// A Norm and its device memory.
struct DeviceNorm {
  Norm norm;
  OwnedTensor weight, bias, mean, rstd;

  DeviceNorm(Stream& stream, const Problem& problem, const Matrix& w,
             const Matrix& b) {
    weight = UploadVector(stream, w.values, DType::kFloat32);
    rstd = EmptyVector(stream, problem.rows, DType::kFloat32);
    if (problem.kind == NormKind::kLayerNorm) {
      bias = UploadVector(stream, b.values, DType::kFloat32);
      mean = EmptyVector(stream, problem.rows, DType::kFloat32);
    }
    norm = {problem.kind, static_cast<float>(kEpsilon), weight, bias};
  }
};

class NormTest : public KernelTest {};
INSTANTIATE_KERNEL_TEST(NormTest);

TEST_P(NormTest, ForwardMatchesReference) {
  for (const Problem& problem : Problems()) {
    const Matrix x = RandomMatrix(problem.rows, problem.cols, dtype(), 1, 3.0);
    const Matrix weight = RandomMatrix(1, problem.cols, DType::kFloat32, 2);
    const Matrix bias = RandomMatrix(1, problem.cols, DType::kFloat32, 3);
    const auto got = Run([&](Stream& stream) {
      DeviceNorm norm(stream, problem, weight, bias);
      OwnedTensor in = Upload(stream, x, dtype());
      OwnedTensor out = Empty(stream, problem.rows, problem.cols, dtype());
      EXPECT_OK(
          ops::NormForward(stream, norm.norm, in, out, norm.mean, norm.rstd));
      std::vector<Matrix> results = {Download(out), Download(norm.rstd)};
      if (!norm.mean.empty()) results.push_back(Download(norm.mean));
      return results;
    });
    const Reference want = Normalise(problem.kind, x, weight, bias);
    EXPECT_TRUE(Near(got[0], want.out, Tolerance(dtype(), problem.cols)));
    EXPECT_TRUE(NearEach(got[1], want.rstd,
                         Tolerance(DType::kFloat32, problem.cols), 0.0));
    if (problem.kind == NormKind::kLayerNorm) {
      EXPECT_TRUE(NearEach(got[2], want.mean,
                           Tolerance(DType::kFloat32, problem.cols), 3.0));
    }
  }
}

TEST_P(NormTest, LargeMeanDoesNotCancelTheVariance) {
  const Problem problem = {NormKind::kLayerNorm, 2, 64};
  Matrix x(2, 64);
  for (int64_t i = 0; i < 128; ++i) x.values[i] = 512.0 + 4 * (i % 2);
  const Matrix ones(1, 64, 1.0), zeros(1, 64, 0.0);
  const auto got = Run([&](Stream& stream) {
    DeviceNorm norm(stream, problem, ones, zeros);
    OwnedTensor in = Upload(stream, x, dtype());
    EXPECT_OK(
        ops::NormForward(stream, norm.norm, in, in, norm.mean, norm.rstd));
    return std::vector<Matrix>{Download(in)};
  });
  EXPECT_NEAR(got[0].values[0], -1.0, 0.01);
  EXPECT_NEAR(got[0].values[1], 1.0, 0.01);
}

TEST_P(NormTest, ResidualForwardNormalisesTheStoredSum) {
  constexpr double kProbability = 0.2;
  constexpr uint64_t kKey = 77;
  for (const Problem& problem : Problems()) {
    for (bool dropped : {false, true}) {
      const Matrix residual =
          RandomMatrix(problem.rows, problem.cols, dtype(), 4, 2.0);
      const Matrix branch =
          RandomMatrix(problem.rows, problem.cols, dtype(), 5, 2.0);
      const Matrix weight = RandomMatrix(1, problem.cols, DType::kFloat32, 6);
      const Matrix bias = RandomMatrix(1, problem.cols, DType::kFloat32, 7);
      std::vector<int32_t> sample(problem.rows), position(problem.rows);
      Matrix sum = residual;
      for (int64_t row = 0; row < problem.rows; ++row) {
        sample[row] = static_cast<int32_t>(row / 5);
        position[row] = static_cast<int32_t>(row % 5);
        for (int64_t col = 0; col < problem.cols; ++col) {
          double factor = 1.0;
          if (dropped) {
            factor = KeptReference(static_cast<float>(kProbability), kKey, 9,
                                   sample[row], position[row], col)
                         ? 1.0 / (1.0 - kProbability)
                         : 0.0;
          }
          sum(row, col) += factor * branch(row, col);
        }
      }
      const auto got = Run([&](Stream& stream) {
        DeviceNorm norm(stream, problem, weight, bias);
        OwnedTensor in = Upload(stream, residual, dtype());
        OwnedTensor add = Upload(stream, branch, dtype());
        OwnedTensor out = Empty(stream, problem.rows, problem.cols, dtype());
        OwnedTensor samples = UploadInts(stream, sample, DType::kUInt32);
        OwnedTensor positions = UploadInts(stream, position);
        const StepScalars scalars = {.step = 9};
        Dropout dropout;
        if (dropped) {
          dropout = {static_cast<float>(kProbability),
                     kKey,
                     &scalars,
                     {samples, positions}};
        }
        EXPECT_OK(ops::ResidualNormForward(stream, norm.norm, in, add, dropout,
                                           in, out, norm.mean, norm.rstd));
        return std::vector<Matrix>{Download(in), Download(out)};
      });
      EXPECT_TRUE(NearEach(got[0], sum, Tolerance(dtype()), 2.0));
      EXPECT_TRUE(Near(got[1],
                       Normalise(problem.kind, got[0], weight, bias).out,
                       Tolerance(dtype(), problem.cols)));
    }
  }
}

TEST_P(NormTest, BackwardMatchesDifferencesAndAddsToWeights) {
  for (const Problem& problem : Problems()) {
    if (problem.rows > 10) continue;  // differences are slow
    const Matrix x = RandomMatrix(problem.rows, problem.cols, dtype(), 8, 2.0);
    const Matrix dout = RandomMatrix(problem.rows, problem.cols, dtype(), 9);
    const Matrix residual =
        RandomMatrix(problem.rows, problem.cols, dtype(), 10);
    const Matrix weight = RandomMatrix(1, problem.cols, DType::kFloat32, 11);
    const Matrix bias = RandomMatrix(1, problem.cols, DType::kFloat32, 12);
    const Matrix start = RandomMatrix(1, problem.cols, DType::kFloat32, 13);
    const Reference forward = Normalise(problem.kind, x, weight, bias);
    const bool centred = problem.kind == NormKind::kLayerNorm;
    const auto got = Run([&](Stream& stream) {
      DeviceNorm norm(stream, problem, weight, bias);
      norm.rstd = UploadVector(stream, forward.rstd.values, DType::kFloat32);
      if (centred) {
        norm.mean = UploadVector(stream, forward.mean.values, DType::kFloat32);
      }
      OwnedTensor in = Upload(stream, x, dtype());
      OwnedTensor grad = Upload(stream, dout, dtype());
      OwnedTensor dx = Upload(stream, residual, dtype());
      OwnedTensor alone = Empty(stream, problem.rows, problem.cols, dtype());
      OwnedTensor dweight = UploadVector(stream, start.values, DType::kFloat32);
      OwnedTensor dbias;
      if (centred) dbias = UploadVector(stream, start.values, DType::kFloat32);
      // The residual's gradient in place; then none.
      EXPECT_OK(ops::NormBackward(stream, norm.norm, grad, in, norm.mean,
                                  norm.rstd, dx, dx, dweight, dbias));
      std::vector<Matrix> results = {Download(dx), Download(dweight)};
      if (centred) results.push_back(Download(dbias));
      EXPECT_OK(ops::NormBackward(stream, norm.norm, grad, in, norm.mean,
                                  norm.rstd, Tensor(), alone, dweight, dbias));
      results.push_back(Download(alone));
      return results;
    });
    const Matrix dx = DifferenceGradient(
        [&](const Matrix& at) {
          return Normalise(problem.kind, at, weight, bias).out;
        },
        x, dout);
    Matrix sum = dx;
    for (size_t i = 0; i < sum.values.size(); ++i) {
      sum.values[i] += residual.values[i];
    }
    const double tolerance = Tolerance(dtype(), problem.cols);
    EXPECT_TRUE(Near(got[0], sum, tolerance, 1.0));
    EXPECT_TRUE(Near(got.back(), dx, tolerance, 1.0));
    Matrix dweight = DifferenceGradient(
        [&](const Matrix& at) {
          return Normalise(problem.kind, x, at, bias).out;
        },
        weight, dout);
    for (size_t i = 0; i < dweight.values.size(); ++i) {
      dweight.values[i] += start.values[i];
    }
    EXPECT_TRUE(Near(got[1], dweight, Tolerance(DType::kFloat32, 20), 1.0));
    if (centred) {
      Matrix dbias = start;
      for (int64_t row = 0; row < x.rows; ++row) {
        for (int64_t col = 0; col < x.cols; ++col) {
          dbias(0, col) += dout(row, col);
        }
      }
      EXPECT_TRUE(Near(got[2], dbias, Tolerance(DType::kFloat32, 20), 1.0));
    }
  }
}

TEST_P(NormTest, WeightGradientsOfManyRowsDoNotHangOnThreads) {
  const Problem problem = {NormKind::kLayerNorm, 700, 67};
  const Matrix x = RandomMatrix(700, 67, dtype(), 14, 2.0);
  const Matrix dout = RandomMatrix(700, 67, dtype(), 15);
  const Matrix ones(1, 67, 1.0), zeros(1, 67, 0.0);
  const Reference forward = Normalise(problem.kind, x, ones, zeros);
  const auto got = Run([&](Stream& stream) {
    DeviceNorm norm(stream, problem, ones, zeros);
    norm.rstd = UploadVector(stream, forward.rstd.values, DType::kFloat32);
    norm.mean = UploadVector(stream, forward.mean.values, DType::kFloat32);
    OwnedTensor in = Upload(stream, x, dtype());
    OwnedTensor grad = Upload(stream, dout, dtype());
    OwnedTensor dweight = UploadVector(stream, zeros.values, DType::kFloat32);
    OwnedTensor dbias = UploadVector(stream, zeros.values, DType::kFloat32);
    EXPECT_OK(ops::NormBackward(stream, norm.norm, grad, in, norm.mean,
                                norm.rstd, Tensor(), grad, dweight, dbias));
    return std::vector<Matrix>{Download(dweight), Download(dbias)};
  });
  Matrix dweight(1, 67), dbias(1, 67);
  for (int64_t row = 0; row < 700; ++row) {
    for (int64_t col = 0; col < 67; ++col) {
      dweight(0, col) += dout(row, col) * forward.out(row, col);
      dbias(0, col) += dout(row, col);
    }
  }
  EXPECT_TRUE(Near(got[0], dweight, Tolerance(DType::kFloat32, 700)));
  EXPECT_TRUE(Near(got[1], dbias, Tolerance(DType::kFloat32, 700)));
}

TEST(NormCheckTest, NamesWhatIsWrong) {
  std::unique_ptr<Device> device = MakeDevice(CpuLevel::kV2, 1);
  Stream& stream = device->stream();
  OwnedTensor x = Upload(stream, Matrix(3, 8), DType::kFloat32);
  OwnedTensor weight = EmptyVector(stream, 7, DType::kFloat32);
  OwnedTensor rstd = EmptyVector(stream, 3, DType::kFloat32);
  const Norm norm = {NormKind::kRmsNorm, 1e-5f, weight, Tensor()};
  EXPECT_THAT(ops::NormForward(stream, norm, x, x, Tensor(), rstd),
              testing::StatusIs(
                  absl::StatusCode::kInvalidArgument,
                  ::testing::Eq("norm forward: weight is (7), want (8)")));
}

}  // namespace
}  // namespace lockstep
