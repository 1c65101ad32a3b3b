#include "kernels/ops/optimizer.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/testing/tolerances.h"
#include "tests/unit/kernels/kernel_test.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Tolerance;

const std::vector<int64_t> kSizes = {1, 5, 16, 67, 40001};

// Constants that differ from each other, so that a mix-up shows.
const ops::AdamWConstants kAdam = {0.9f, 0.95f, 1e-3f, 0.1f};
const StepScalars kScalars = {.step = 3,
                              .finite = 1,
                              .learning_rate = 0.01f,
                              .inverse_valid_tokens = 0.0f,
                              .clip_factor = 0.5f,
                              .bias_correction1 = 0.271f,
                              .bias_correction2 = 0.142625f};

struct Vectors {
  Matrix parameter, gradient, first, second;
  explicit Vectors(int64_t n)
      : parameter(RandomMatrix(1, n, DType::kFloat32, 1)),
        gradient(RandomMatrix(1, n, DType::kFloat32, 2)),
        first(RandomMatrix(1, n, DType::kFloat32, 3)),
        second(RandomMatrix(1, n, DType::kFloat32, 4)) {
    for (double& value : second.values) value = std::abs(value);
  }
};

struct DeviceVectors {
  OwnedTensor parameter, gradient, first, second, compute;
  DeviceVectors(Stream& stream, const Vectors& host)
      : parameter(UploadVector(stream, host.parameter.values, DType::kFloat32)),
        gradient(UploadVector(stream, host.gradient.values, DType::kFloat32)),
        first(UploadVector(stream, host.first.values, DType::kFloat32)),
        second(UploadVector(stream, host.second.values, DType::kFloat32)),
        compute(EmptyVector(stream, host.parameter.cols, DType::kBFloat16)) {}
  std::vector<Matrix> All() const {
    return {Download(parameter), Download(gradient), Download(first),
            Download(second), Download(compute)};
  }
};

// Adam's direction of element i, after the moments were updated.
double AdamDirection(Vectors& v, int64_t i) {
  const double g = kScalars.clip_factor * v.gradient.values[i];
  double& m = v.first.values[i];
  double& s = v.second.values[i];
  m = kAdam.beta1 * m + (1.0 - kAdam.beta1) * g;
  s = kAdam.beta2 * s + (1.0 - kAdam.beta2) * g * g;
  return m / kScalars.bias_correction1 /
         (std::sqrt(s / kScalars.bias_correction2) + kAdam.epsilon);
}

class OptimizerTest : public KernelTest {
 protected:
  using Update = std::function<absl::Status(Stream&, const DeviceVectors&,
                                            const StepScalars*)>;
  // Runs `update` and compares with `want`, which was updated by hand; the bf16
  // copy must be the parameter rounded. Then again with finite = 0, which must
  // change nothing.
  void Check(int64_t n, const Update& update, const Vectors& want,
             bool with_copy) const {
    const Vectors start(n);
    const auto got = Run([&](Stream& stream) {
      DeviceVectors device(stream, start);
      EXPECT_OK(update(stream, device, &kScalars));
      return device.All();
    });
    // A subtraction of two terms of size 1 at most: absolute below that.
    EXPECT_TRUE(
        NearEach(got[0], want.parameter, Tolerance(DType::kFloat32), 1.0));
    EXPECT_TRUE(
        NearEach(got[1], want.gradient, Tolerance(DType::kFloat32), 1.0));
    EXPECT_TRUE(NearEach(got[2], want.first, Tolerance(DType::kFloat32), 1.0));
    EXPECT_TRUE(NearEach(got[3], want.second, Tolerance(DType::kFloat32), 1.0));
    if (with_copy) {
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(got[4].values[i],
                  Rounded(got[0].values[i], DType::kBFloat16));
      }
    }
    const auto skipped = Run([&](Stream& stream) {
      DeviceVectors device(stream, start);
      StepScalars scalars = kScalars;
      scalars.finite = 0;
      EXPECT_OK(update(stream, device, &scalars));
      return device.All();
    });
    EXPECT_EQ(skipped[0].values, start.parameter.values);
    EXPECT_EQ(skipped[1].values, start.gradient.values);
    EXPECT_EQ(skipped[2].values, start.first.values);
    EXPECT_EQ(skipped[3].values, start.second.values);
  }
};
INSTANTIATE_FP32_KERNEL_TEST(OptimizerTest);

TEST_P(OptimizerTest, AdamWMatchesReference) {
  for (int64_t n : kSizes) {
    Vectors want(n);
    for (int64_t i = 0; i < n; ++i) {
      const double u = AdamDirection(want, i);
      double& p = want.parameter.values[i];
      p -= kScalars.learning_rate * kAdam.weight_decay * p;
      p -= kScalars.learning_rate * u;
    }
    Check(
        n,
        [](Stream& stream, const DeviceVectors& v, const StepScalars* s) {
          return ops::AdamW(stream, kAdam, s, v.parameter, v.gradient, v.first,
                            v.second, v.compute);
        },
        want, true);
  }
}

TEST_P(OptimizerTest, SgdMatchesReference) {
  const ops::SgdConstants constants = {0.8f, 0.05f};
  for (int64_t n : kSizes) {
    Vectors want(n);
    for (int64_t i = 0; i < n; ++i) {
      double& p = want.parameter.values[i];
      double& b = want.first.values[i];
      b = constants.momentum * b +
          kScalars.clip_factor * want.gradient.values[i] +
          constants.weight_decay * p;
      p -= kScalars.learning_rate * b;
    }
    Check(
        n,
        [&](Stream& stream, const DeviceVectors& v, const StepScalars* s) {
          return ops::Sgd(stream, constants, s, v.parameter, v.gradient,
                          v.first, v.compute);
        },
        want, true);
  }
}

TEST_P(OptimizerTest, LarsMatchesReference) {
  const ops::LarsConstants constants = {0.8f, 0.05f};
  const float ratio = 0.37f;
  for (int64_t n : kSizes) {
    Vectors want(n);
    for (int64_t i = 0; i < n; ++i) {
      double& p = want.parameter.values[i];
      double& b = want.first.values[i];
      b = constants.momentum * b +
          kScalars.learning_rate * ratio *
              (kScalars.clip_factor * want.gradient.values[i] +
               constants.weight_decay * p);
      p -= b;
    }
    Check(
        n,
        [&](Stream& stream, const DeviceVectors& v, const StepScalars* s) {
          return ops::Lars(stream, constants, s, &ratio, v.parameter,
                           v.gradient, v.first, v.compute);
        },
        want, true);
  }
}

TEST_P(OptimizerTest, LambMomentsWriteTheUpdateOverTheGradient) {
  for (int64_t n : kSizes) {
    Vectors want(n);
    for (int64_t i = 0; i < n; ++i) {
      want.gradient.values[i] = AdamDirection(want, i) +
                                kAdam.weight_decay * want.parameter.values[i];
    }
    Check(
        n,
        [](Stream& stream, const DeviceVectors& v, const StepScalars* s) {
          return ops::LambMoments(stream, kAdam, s, v.parameter, v.gradient,
                                  v.first, v.second);
        },
        want, false);
  }
}

TEST_P(OptimizerTest, LambApplyMovesByRateAndRatio) {
  const float ratio = 1.7f;
  for (int64_t n : kSizes) {
    Vectors want(n);
    for (int64_t i = 0; i < n; ++i) {
      want.parameter.values[i] -=
          kScalars.learning_rate * ratio * want.gradient.values[i];
    }
    Check(
        n,
        [&](Stream& stream, const DeviceVectors& v, const StepScalars* s) {
          return ops::LambApply(stream, s, &ratio, v.parameter, v.gradient,
                                v.compute);
        },
        want, true);
  }
}

TEST_P(OptimizerTest, SumOfSquaresIsTheSameOnTwoThreads) {
  for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{4097}, int64_t{100003}}) {
    const Matrix x = RandomMatrix(1, n, DType::kFloat32, 5);
    double want = 2.5;
    for (double value : x.values) want += value * value;
    const auto got = Run([&](Stream& stream) {
      OwnedTensor in = UploadVector(stream, x.values, DType::kFloat32);
      Matrix sum(1, 1, 2.5);
      EXPECT_OK(ops::SumOfSquares(stream, in, sum.values.data()));
      return std::vector<Matrix>{sum};
    });
    // Blocks of 4,096 in fp32.
    EXPECT_NEAR(got[0].values[0], want,
                want * Tolerance(DType::kFloat32, 4096));
  }
}

TEST_P(OptimizerTest, SumOfSquaresShowsNanAndInfinity) {
  for (double bad : {std::numeric_limits<double>::quiet_NaN(),
                     std::numeric_limits<double>::infinity(), 1e30}) {
    Matrix x(1, 9000, 1.0);
    x(0, 8999) = bad;
    Run([&](Stream& stream) {
      OwnedTensor in = UploadVector(stream, x.values, DType::kFloat32);
      double sum = 0.0;
      EXPECT_OK(ops::SumOfSquares(stream, in, &sum));
      EXPECT_FALSE(std::isfinite(sum));
      return std::vector<Matrix>();
    });
  }
}

TEST(OptimizerCheckTest, NamesWhatIsWrong) {
  std::unique_ptr<Device> device = MakeDevice(CpuLevel::kV2, 1);
  Stream& stream = device->stream();
  OwnedTensor p = EmptyVector(stream, 9, DType::kFloat32);
  OwnedTensor small = EmptyVector(stream, 8, DType::kFloat32);
  EXPECT_THAT(ops::AdamW(stream, kAdam, &kScalars, p, p, p, small, Tensor()),
              testing::StatusIs(
                  absl::StatusCode::kInvalidArgument,
                  ::testing::Eq("adamw: second_moment is (8), want (9)")));
  EXPECT_THAT(
      ops::AdamW(stream, kAdam, &kScalars, p, p, p, p, p),
      testing::StatusIs(absl::StatusCode::kInvalidArgument,
                        ::testing::HasSubstr("compute is fp32, want bf16")));
}

}  // namespace
}  // namespace lockstep
