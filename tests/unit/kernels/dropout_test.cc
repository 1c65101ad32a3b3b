#include "kernels/ops/dropout.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/unit/kernels/kernel_test.h"
#include "tests/unit/kernels/philox_reference.h"

namespace lockstep {
namespace {

// Known answers of Random123 1.09, file kat_vectors, "philox4x32 10".
TEST(PhiloxReferenceTest, GivesKnownAnswers) {
  EXPECT_EQ(PhiloxReference({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                     0x9b00dbd8}));
  EXPECT_EQ(PhiloxReference({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                            {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6,
                                     0x6d5451fd}));
  EXPECT_EQ(PhiloxReference({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                            {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420,
                                     0x24126ea1}));
}

TEST(SiteKeyTest, DiffersBySeedAndSite) {
  std::set<uint64_t> keys;
  for (uint64_t seed : {0, 1, 2, 3}) {
    for (uint64_t site = 0; site < 100; ++site) {
      keys.insert(SiteKey(seed, site));
    }
  }
  EXPECT_EQ(keys.size(), 400u);
  EXPECT_EQ(SiteKey(5, 6), SiteKey(5, 6));
}

struct Origin {
  std::vector<int32_t> sample, position;
  explicit Origin(int64_t rows) {
    for (int64_t row = 0; row < rows; ++row) {
      sample.push_back(static_cast<int32_t>(row / 3 + 5));
      position.push_back(static_cast<int32_t>(row % 3 + 2));
    }
  }
};

class DropoutTest : public KernelTest {
 protected:
  std::vector<Matrix> RunOn(const Matrix& x, const Origin& origin,
                            float probability, uint64_t key, uint32_t step,
                            int64_t first_column) const {
    return Run([&](Stream& stream) {
      OwnedTensor in = Upload(stream, x, dtype());
      OwnedTensor out = Empty(stream, x.rows, x.cols, dtype());
      OwnedTensor sample = UploadInts(stream, origin.sample, DType::kUInt32);
      OwnedTensor position = UploadInts(stream, origin.position);
      const StepScalars scalars = {.step = step};
      const Dropout dropout = {probability, key, &scalars, {sample, position}};
      EXPECT_OK(ops::Dropout(stream, in, dropout, first_column, out));
      EXPECT_OK(ops::Dropout(stream, in, dropout, first_column, in));
      EXPECT_EQ(Download(in).values, Download(out).values) << "in place";
      return std::vector<Matrix>{Download(out)};
    });
  }
};
INSTANTIATE_KERNEL_TEST(DropoutTest);

TEST_P(DropoutTest, BitsAreThoseOfScalarPhilox) {
  for (const auto& [rows, cols, first] :
       std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {1, 1, 0}, {4, 7, 0}, {3, 64, 3}, {5, 130, 1022}, {40, 1100, 2}}) {
    const Matrix x(rows, cols, 1.0);
    const Origin origin(rows);
    for (float probability : {0.1f, 0.5f, 0.9f}) {
      const auto got =
          RunOn(x, origin, probability, 0xdeadbeef12345678, 31, first);
      Matrix want = x;
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t col = 0; col < cols; ++col) {
          want(row, col) =
              KeptReference(probability, 0xdeadbeef12345678, 31,
                            origin.sample[row], origin.position[row],
                            static_cast<uint32_t>(first + col))
                  ? Rounded(1.0f / (1.0f - probability), dtype())
                  : 0.0;
        }
      }
      EXPECT_TRUE(Near(got[0], want, 0.0));
    }
  }
}

TEST_P(DropoutTest, RateAndMeanAreAsAsked) {
  // 300,000 bits: five standard deviations of the rate are at most 0.0046.
  const Matrix x(300, 1000, 1.0);
  const auto got = RunOn(x, Origin(300), 0.1f, 3, 1, 0);
  double kept = 0.0, sum = 0.0;
  for (double value : got[0].values) {
    kept += value != 0.0 ? 1.0 : 0.0;
    sum += value;
  }
  EXPECT_NEAR(kept / 300000, 0.9, 0.003);
  EXPECT_NEAR(sum / 300000, 1.0, 0.01);
}

TEST_P(DropoutTest, BitsDifferByStepSampleAndSite) {
  const Matrix x(1, 1000, 1.0);
  Origin other(1);
  other.sample[0] += 1;
  const auto base = RunOn(x, Origin(1), 0.5f, 3, 1, 0)[0];
  int count = 0;
  for (const Matrix& changed : {RunOn(x, Origin(1), 0.5f, 3, 2, 0)[0],
                                RunOn(x, other, 0.5f, 3, 1, 0)[0],
                                RunOn(x, Origin(1), 0.5f, 4, 1, 0)[0]}) {
    int differing = 0;
    for (int64_t i = 0; i < 1000; ++i) {
      differing += base.values[i] != changed.values[i] ? 1 : 0;
    }
    // 500 expected, standard deviation 16.
    EXPECT_NEAR(differing, 500, 80) << "change " << count;
    ++count;
  }
}

TEST_P(DropoutTest, ZeroProbabilityCopies) {
  const Matrix x = RandomMatrix(9, 50, dtype(), 1);
  Run([&](Stream& stream) {
    OwnedTensor in = Upload(stream, x, dtype());
    OwnedTensor out = Empty(stream, 9, 50, dtype());
    EXPECT_OK(ops::Dropout(stream, in, Dropout(), 0, out));
    EXPECT_EQ(Download(out).values, x.values);
    return std::vector<Matrix>();
  });
}

TEST(DropoutCheckTest, NamesWhatIsWrong) {
  std::unique_ptr<Device> device = MakeDevice(CpuLevel::kV2, 1);
  Stream& stream = device->stream();
  OwnedTensor x = Upload(stream, Matrix(3, 8), DType::kFloat32);
  const StepScalars scalars;
  OwnedTensor sample = UploadInts(stream, {1, 2, 3}, DType::kUInt32);
  OwnedTensor position = UploadInts(stream, {1, 2});
  const auto run = [&](float probability) {
    return ops::Dropout(stream, x,
                        {probability, 1, &scalars, {sample, position}}, 0, x);
  };
  for (float bad : {1.0f, -0.1f, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(run(bad), testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                            ::testing::HasSubstr("[0, 1)")));
  }
  EXPECT_THAT(
      run(0.5f),
      testing::StatusIs(absl::StatusCode::kInvalidArgument,
                        ::testing::HasSubstr("position is (2), want (3)")));
  EXPECT_THAT(
      ops::Dropout(stream, x, {0.5f, 1, nullptr, {sample, position}}, 0, x),
      testing::StatusIs(absl::StatusCode::kInvalidArgument,
                        ::testing::HasSubstr("step scalars is missing")));
}

}  // namespace
}  // namespace lockstep
