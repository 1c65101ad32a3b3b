#include "kernels/ops/embedding.h"

#include <cstdint>
#include <random>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/testing/tolerances.h"
#include "tests/unit/kernels/kernel_test.h"
#include "tests/unit/kernels/philox_reference.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Tolerance;

constexpr double kProbability = 0.25;
constexpr uint64_t kKey = 0xfeedfacecafebeef;
constexpr uint32_t kStep = 4;

struct Problem {
  int64_t rows, cols;
};
const std::vector<Problem> kProblems = {{1, 1}, {5, 7}, {9, 48}, {400, 65}};
constexpr int64_t kVocabulary = 11;
constexpr int64_t kPositions = 6;

struct Ids {
  std::vector<int32_t> token, position, sample;
  explicit Ids(int64_t rows) {
    std::mt19937 random(rows);
    for (int64_t row = 0; row < rows; ++row) {
      token.push_back(random() % kVocabulary);
      position.push_back(row % kPositions);
      sample.push_back(row / kPositions);
    }
  }
  double Factor(int64_t row, int64_t col, bool dropped) const {
    if (!dropped) return 1.0;
    return KeptReference(kProbability, kKey, kStep, sample[row], position[row],
                         col)
               ? 1.0 / (1.0 - kProbability)
               : 0.0;
  }
};

struct DeviceIds {
  OwnedTensor token, position, sample;
  StepScalars scalars;
  Dropout dropout;
  DeviceIds(Stream& stream, const Ids& ids, bool dropped)
      : token(UploadInts(stream, ids.token)),
        position(UploadInts(stream, ids.position)),
        sample(UploadInts(stream, ids.sample, DType::kUInt32)),
        scalars{.step = kStep} {
    if (dropped) {
      dropout = {kProbability, kKey, &scalars, {sample, position}};
    }
  }
};

class EmbeddingTest : public KernelTest {};
INSTANTIATE_KERNEL_TEST(EmbeddingTest);

TEST_P(EmbeddingTest, ForwardAddsRowsAndDrops) {
  for (const Problem& problem : kProblems) {
    for (DType weights : {DType::kFloat32, dtype()}) {
      for (bool dropped : {false, true}) {
        const Ids ids(problem.rows);
        const Matrix tokens =
            RandomMatrix(kVocabulary, problem.cols, weights, 1);
        const Matrix positions =
            RandomMatrix(kPositions, problem.cols, weights, 2);
        const auto got = Run([&](Stream& stream) {
          DeviceIds device(stream, ids, dropped);
          OwnedTensor w = Upload(stream, tokens, weights, RowPadding::kDense);
          OwnedTensor p =
              Upload(stream, positions, weights, RowPadding::kDense);
          OwnedTensor out = Empty(stream, problem.rows, problem.cols, dtype());
          OwnedTensor bare = Empty(stream, problem.rows, problem.cols, dtype());
          EXPECT_OK(ops::EmbeddingForward(stream, device.token, 0,
                                          device.position, w, p, device.dropout,
                                          out));
          EXPECT_OK(ops::EmbeddingForward(stream, device.token, 0, Tensor(), w,
                                          Tensor(), device.dropout, bare));
          return std::vector<Matrix>{Download(out), Download(bare)};
        });
        Matrix want(problem.rows, problem.cols), bare = want;
        for (int64_t row = 0; row < problem.rows; ++row) {
          for (int64_t col = 0; col < problem.cols; ++col) {
            const double factor = ids.Factor(row, col, dropped);
            bare(row, col) = factor * tokens(ids.token[row], col);
            want(row, col) =
                bare(row, col) + factor * positions(ids.position[row], col);
          }
        }
        EXPECT_TRUE(NearEach(got[0], want, Tolerance(dtype()), 1.0));
        EXPECT_TRUE(NearEach(got[1], bare, Tolerance(dtype()), 1.0));
      }
    }
  }
}

TEST_P(EmbeddingTest, PartsOfTheVocabularyAddUpToTheWhole) {
  const Problem problem = {17, 33};
  const Ids ids(problem.rows);
  const Matrix tokens = RandomMatrix(kVocabulary, problem.cols, dtype(), 1);
  const Matrix dout = RandomMatrix(problem.rows, problem.cols, dtype(), 3);
  const int64_t cut = kVocabulary / 3;
  const auto part = [&](int64_t begin, int64_t end) {
    Matrix rows(end - begin, problem.cols);
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t col = 0; col < problem.cols; ++col) {
        rows(row - begin, col) = tokens(row, col);
      }
    }
    return rows;
  };
  const auto run = [&](int64_t first_id, const Matrix& weights) {
    return Run([&](Stream& stream) {
      DeviceIds device(stream, ids, false);
      OwnedTensor w = Upload(stream, weights, dtype(), RowPadding::kDense);
      OwnedTensor out = Empty(stream, problem.rows, problem.cols, dtype());
      EXPECT_OK(ops::EmbeddingForward(stream, device.token, first_id, Tensor(),
                                      w, Tensor(), device.dropout, out));
      OwnedTensor grad = Upload(stream, dout, dtype());
      OwnedTensor dtokens = Upload(stream, Matrix(weights.rows, problem.cols),
                                   DType::kFloat32, RowPadding::kDense);
      EXPECT_OK(ops::EmbeddingBackward(stream, grad, device.token, first_id,
                                       Tensor(), device.dropout, dtokens,
                                       Tensor()));
      return std::vector<Matrix>{Download(out), Download(dtokens)};
    });
  };
  const auto whole = run(0, tokens);
  const auto low = run(0, part(0, cut));
  const auto high = run(cut, part(cut, kVocabulary));
  for (int64_t row = 0; row < problem.rows; ++row) {
    const bool is_low = ids.token[row] < cut;
    for (int64_t col = 0; col < problem.cols; ++col) {
      EXPECT_EQ((is_low ? low : high)[0](row, col), whole[0](row, col));
      EXPECT_EQ((is_low ? high : low)[0](row, col), 0.0);
    }
  }
  for (int64_t id = 0; id < kVocabulary; ++id) {
    for (int64_t col = 0; col < problem.cols; ++col) {
      EXPECT_EQ(id < cut ? low[1](id, col) : high[1](id - cut, col),
                whole[1](id, col));
    }
  }
}

TEST_P(EmbeddingTest, BackwardAddsRowsThatShareAnIdInOrder) {
  for (const Problem& problem : kProblems) {
    for (bool dropped : {false, true}) {
      const Ids ids(problem.rows);
      const Matrix dout = RandomMatrix(problem.rows, problem.cols, dtype(), 3);
      const Matrix start =
          RandomMatrix(kVocabulary, problem.cols, DType::kFloat32, 4);
      const auto got = Run([&](Stream& stream) {
        DeviceIds device(stream, ids, dropped);
        OwnedTensor grad = Upload(stream, dout, dtype());
        OwnedTensor dtokens =
            Upload(stream, start, DType::kFloat32, RowPadding::kDense);
        OwnedTensor dpositions =
            Upload(stream, Matrix(kPositions, problem.cols), DType::kFloat32,
                   RowPadding::kDense);
        EXPECT_OK(ops::EmbeddingBackward(stream, grad, device.token, 0,
                                         device.position, device.dropout,
                                         dtokens, dpositions));
        EXPECT_OK(ops::EmbeddingBackward(stream, grad, device.token, 0,
                                         Tensor(), device.dropout, dtokens,
                                         Tensor()));
        return std::vector<Matrix>{Download(dtokens), Download(dpositions)};
      });
      Matrix dtokens = start, dpositions(kPositions, problem.cols);
      for (int64_t row = 0; row < problem.rows; ++row) {
        for (int64_t col = 0; col < problem.cols; ++col) {
          const double grad = ids.Factor(row, col, dropped) * dout(row, col);
          dtokens(ids.token[row], col) += 2 * grad;
          dpositions(ids.position[row], col) += grad;
        }
      }
      const double tolerance =
          Tolerance(DType::kFloat32, problem.rows / kPositions + 2);
      EXPECT_TRUE(Near(got[0], dtokens, tolerance, 1.0));
      EXPECT_TRUE(Near(got[1], dpositions, tolerance, 1.0));
    }
  }
}

TEST_P(EmbeddingTest, SegmentMeansGoThereAndBack) {
  const std::vector<int32_t> bounds = {1, 4, 4, 5, 398};
  for (int64_t cols : {1, 19, 64, 100}) {
    const Matrix x = RandomMatrix(400, cols, dtype(), 5);
    const Matrix dpooled = RandomMatrix(4, cols, dtype(), 6);
    const auto got = Run([&](Stream& stream) {
      OwnedTensor at = UploadInts(stream, bounds);
      OwnedTensor in = Upload(stream, x, dtype());
      OwnedTensor pooled = Empty(stream, 4, cols, dtype());
      OwnedTensor grad = Upload(stream, dpooled, dtype());
      OwnedTensor dx = Empty(stream, 400, cols, dtype());
      EXPECT_OK(ops::SegmentMeanForward(stream, in, at, pooled));
      EXPECT_OK(ops::SegmentMeanBackward(stream, grad, at, dx));
      return std::vector<Matrix>{Download(pooled), Download(dx)};
    });
    const auto mean = [&](const Matrix& in) {
      Matrix pooled(4, cols);
      for (int64_t s = 0; s < 4; ++s) {
        for (int32_t row = bounds[s]; row < bounds[s + 1]; ++row) {
          for (int64_t col = 0; col < cols; ++col) {
            pooled(s, col) += in(row, col) / (bounds[s + 1] - bounds[s]);
          }
        }
      }
      return pooled;
    };
    EXPECT_TRUE(Near(got[0], mean(x), Tolerance(dtype(), 400)));
    // The mean is linear; rows of no segment have no gradient.
    Matrix dx(400, cols);
    for (int64_t s = 0; s < 4; ++s) {
      for (int32_t row = bounds[s]; row < bounds[s + 1]; ++row) {
        for (int64_t col = 0; col < cols; ++col) {
          dx(row, col) = dpooled(s, col) / (bounds[s + 1] - bounds[s]);
        }
      }
    }
    EXPECT_TRUE(NearEach(got[1], dx, Tolerance(dtype()), 1e-3));
  }
}

}  // namespace
}  // namespace lockstep
