#include "kernels/ops/cross_entropy.h"

#include <algorithm>
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

constexpr double kInverseTokens = 0.125;

// Loss of each row; 0 where the target is invalid.
Matrix Losses(const Matrix& logits, const std::vector<int32_t>& target) {
  Matrix loss(1, logits.rows);
  for (int64_t row = 0; row < logits.rows; ++row) {
    if (target[row] < 0) continue;
    double most = -std::numeric_limits<double>::infinity(), sum = 0.0;
    for (int64_t col = 0; col < logits.cols; ++col) {
      most = std::max(most, logits(row, col));
    }
    for (int64_t col = 0; col < logits.cols; ++col) {
      sum += std::exp(logits(row, col) - most);
    }
    loss(0, row) = most + std::log(sum) - logits(row, target[row]);
  }
  return loss;
}

std::vector<int32_t> Targets(int64_t rows, int64_t cols) {
  std::vector<int32_t> target;
  for (int64_t row = 0; row < rows; ++row) {
    target.push_back(row % 4 == 3 ? -1 : static_cast<int32_t>(row * 7 % cols));
  }
  return target;
}

class CrossEntropyTest : public KernelTest {
 protected:
  // Loss, logits after and correct.
  std::vector<Matrix> RunOn(const Matrix& logits,
                            const std::vector<int32_t>& target,
                            LogitsGradient gradient) const {
    return Run([&](Stream& stream) {
      OwnedTensor x = Upload(stream, logits, dtype());
      OwnedTensor at = UploadInts(stream, target);
      OwnedTensor loss = EmptyVector(stream, logits.rows, DType::kFloat32);
      OwnedTensor correct = EmptyVector(stream, logits.rows, DType::kInt32);
      const StepScalars scalars = {.inverse_valid_tokens =
                                       static_cast<float>(kInverseTokens)};
      EXPECT_OK(
          ops::CrossEntropy(stream, x, at, &scalars, gradient, loss, correct));
      return std::vector<Matrix>{Download(loss), Download(x),
                                 Download(correct)};
    });
  }
};
INSTANTIATE_KERNEL_TEST(CrossEntropyTest);

TEST_P(CrossEntropyTest, LossMatchesReferenceAndLogitsStay) {
  for (const auto& [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {3, 2}, {5, 17}, {7, 64}, {9, 129}, {40, 1000}}) {
    const Matrix logits = RandomMatrix(rows, cols, dtype(), 1, 8.0);
    const std::vector<int32_t> target = Targets(rows, cols);
    const auto got = RunOn(logits, target, LogitsGradient::kNone);
    EXPECT_TRUE(NearEach(got[0], Losses(logits, target),
                         Tolerance(DType::kFloat32, cols), 1.0));
    EXPECT_TRUE(Near(got[1], logits, 0.0));
  }
}

TEST_P(CrossEntropyTest, GradientMatchesDifferencesTimesInverseTokens) {
  for (const auto& [rows, cols] :
       std::vector<std::pair<int64_t, int64_t>>{{3, 2}, {5, 17}, {6, 70}}) {
    const Matrix logits = RandomMatrix(rows, cols, dtype(), 2, 4.0);
    const std::vector<int32_t> target = Targets(rows, cols);
    const auto got = RunOn(logits, target, LogitsGradient::kInPlace);
    const Matrix want =
        DifferenceGradient([&](const Matrix& at) { return Losses(at, target); },
                           logits, Matrix(1, rows, kInverseTokens));
    EXPECT_TRUE(Near(got[1], want, Tolerance(dtype(), cols)));
    EXPECT_TRUE(NearEach(got[0], Losses(logits, target),
                         Tolerance(DType::kFloat32, cols), 1.0));
  }
}

TEST_P(CrossEntropyTest, GradientRowsSumToZero) {
  const Matrix logits = RandomMatrix(21, 1000, DType::kFloat32, 3, 6.0);
  if (dtype() == DType::kBFloat16) GTEST_SKIP() << "of fp32 gradients only";
  const auto got = RunOn(logits, Targets(21, 1000), LogitsGradient::kInPlace);
  for (int64_t row = 0; row < 21; ++row) {
    double sum = 0.0;
    for (int64_t col = 0; col < 1000; ++col) sum += got[1](row, col);
    EXPECT_NEAR(sum, 0.0, kInverseTokens * Tolerance(dtype(), 1000));
  }
}

TEST_P(CrossEntropyTest, CorrectIsTheLowestIdOfTheLargest) {
  Matrix logits(5, 40, 1.0);
  logits(0, 20) = 2.0;                  // target 20: right
  logits(1, 3) = logits(1, 20) = 2.0;   // tie, target 20: 3 wins
  logits(2, 20) = logits(2, 39) = 2.0;  // tie, target 20 wins
  logits(3, 21) = 2.0;                  // wrong
  logits(4, 20) = 2.0;                  // invalid row
  const auto got = RunOn(logits, {20, 20, 20, 20, -1}, LogitsGradient::kNone);
  EXPECT_EQ(got[2].values, (std::vector<double>{1, 0, 1, 0, 0}));
}

TEST_P(CrossEntropyTest, PartsOfTheVocabularyGiveWhatTheWholeGives) {
  constexpr int64_t kRows = 11, kCols = 70;
  Matrix logits = RandomMatrix(kRows, kCols, dtype(), 5, 8.0);
  logits(0, 9) = logits(0, 50) = 64.0;  // target 50 in a later part: 9 wins
  logits(1, 20) = 64.0;
  std::vector<int32_t> target = Targets(kRows, kCols);
  target[0] = 50;
  target[1] = 20;
  const std::vector<int64_t> cuts = {0, 1, 33, kCols};
  const int64_t parts = static_cast<int64_t>(cuts.size()) - 1;
  const auto whole = RunOn(logits, target, LogitsGradient::kInPlace);
  const auto got = Run([&](Stream& stream) {
    OwnedTensor at = UploadInts(stream, target);
    OwnedTensor all =
        Upload(stream, Matrix(parts * kRows, ops::kCrossEntropyStatistics),
               DType::kFloat32, RowPadding::kDense);
    std::vector<OwnedTensor> columns;
    for (int64_t p = 0; p < parts; ++p) {
      Matrix part(kRows, cuts[p + 1] - cuts[p]);
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t col = cuts[p]; col < cuts[p + 1]; ++col) {
          part(row, col - cuts[p]) = logits(row, col);
        }
      }
      columns.push_back(Upload(stream, part, dtype()));
      EXPECT_OK(ops::CrossEntropyStatistics(stream, columns[p], at, cuts[p],
                                            all->Rows(p * kRows, kRows)));
    }
    const StepScalars scalars = {.inverse_valid_tokens =
                                     static_cast<float>(kInverseTokens)};
    std::vector<Matrix> results;
    for (int64_t p = 0; p < parts; ++p) {
      OwnedTensor loss = EmptyVector(stream, kRows, DType::kFloat32);
      OwnedTensor correct = EmptyVector(stream, kRows, DType::kInt32);
      EXPECT_OK(ops::CrossEntropyFromStatistics(
          stream, columns[p], at, cuts[p], all, &scalars,
          LogitsGradient::kInPlace, loss, correct));
      results.push_back(Download(loss));
      results.push_back(Download(correct));
      results.push_back(Download(columns[p]));
    }
    return results;
  });
  for (int64_t p = 0; p < parts; ++p) {
    EXPECT_TRUE(
        NearEach(got[3 * p], whole[0], Tolerance(DType::kFloat32, kCols), 1.0));
    EXPECT_EQ(got[3 * p].values, got[0].values) << "not the same bits";
    EXPECT_EQ(got[3 * p + 1].values, whole[2].values);
    Matrix gradient(kRows, cuts[p + 1] - cuts[p]);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t col = cuts[p]; col < cuts[p + 1]; ++col) {
        gradient(row, col - cuts[p]) = whole[1](row, col);
      }
    }
    EXPECT_TRUE(Near(got[3 * p + 2], gradient, Tolerance(dtype(), kCols)));
  }
}

TEST_P(CrossEntropyTest, InvalidRowsAreZeroEvenWithNan) {
  Matrix logits(2, 20, 0.5);
  logits(1, 4) = std::numeric_limits<double>::quiet_NaN();
  const auto got = RunOn(logits, {2, -1}, LogitsGradient::kInPlace);
  EXPECT_EQ(got[0](0, 1), 0.0);
  for (int64_t col = 0; col < 20; ++col) EXPECT_EQ(got[1](1, col), 0.0);
}

TEST_P(CrossEntropyTest, NanAndInfinityReachTheLoss) {
  Matrix logits(2, 20, 0.5);
  logits(0, 4) = std::numeric_limits<double>::quiet_NaN();
  logits(1, 4) = std::numeric_limits<double>::infinity();
  const auto got = RunOn(logits, {2, 2}, LogitsGradient::kNone);
  EXPECT_FALSE(std::isfinite(got[0](0, 0)));
  EXPECT_FALSE(std::isfinite(got[0](0, 1)));
}

TEST_P(CrossEntropyTest, HugeLogitsDoNotOverflow) {
  Matrix logits(2, 20, -3e4);
  logits(0, 2) = 3e4;
  logits(1, 3) = 3e4;
  const auto got = RunOn(logits, {2, 2}, LogitsGradient::kInPlace);
  EXPECT_EQ(got[0](0, 0), 0.0);
  EXPECT_NEAR(got[0](0, 1), 6e4, 300.0);
  EXPECT_EQ(got[1](0, 2), 0.0);
  EXPECT_EQ(got[1](1, 2), -kInverseTokens);
  EXPECT_EQ(got[1](1, 3), kInverseTokens);
}

class SumIntoTest : public KernelTest {};
INSTANTIATE_FP32_KERNEL_TEST(SumIntoTest);

TEST_P(SumIntoTest, AddsInDoublePrecision) {
  const Matrix x = RandomMatrix(1, 10000, DType::kFloat32, 4);
  double want = 3.0, sum = 0.0;
  for (double value : x.values) sum += value;
  want += sum;
  Run([&](Stream& stream) {
    OwnedTensor in = UploadVector(stream, x.values, DType::kFloat32);
    double got = 3.0;
    EXPECT_OK(ops::SumInto(stream, in, &got));
    EXPECT_EQ(got, want);
    return std::vector<Matrix>();
  });
}

}  // namespace
}  // namespace lockstep
