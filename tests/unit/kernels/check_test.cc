// What the ops say of wrong arguments. Each check of kernels/ops/check.h once,
// through an op that uses it.
#include <memory>

#include "kernels/ops/cross_entropy.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/matmul.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/kernels/kernel_test.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;

class ArgumentCheckTest : public ::testing::Test {
 protected:
  static auto Says(const char* message) {
    return StatusIs(absl::StatusCode::kInvalidArgument, ::testing::Eq(message));
  }
  std::unique_ptr<Device> device_ = MakeDevice(CpuLevel::kV2, 1);
  Stream& stream_ = device_->stream();
  OwnedTensor x_ = Upload(stream_, Matrix(4, 6), DType::kFloat32);
  OwnedTensor bf16_ = Upload(stream_, Matrix(4, 6), DType::kBFloat16);
};

TEST_F(ArgumentCheckTest, ShapeIsNamedWithWhatWasWanted) {
  OwnedTensor y = Upload(stream_, Matrix(4, 7), DType::kFloat32);
  EXPECT_THAT(ops::Add(stream_, x_, y, x_),
              Says("add: b is (4, 7), want (4, 6)"));
}

TEST_F(ArgumentCheckTest, TypeIsNamed) {
  EXPECT_THAT(ops::GeluForward(stream_, x_, bf16_),
              Says("gelu forward: out is bf16, want fp32"));
  OwnedTensor ints = UploadInts(stream_, {1, 2});
  EXPECT_THAT(ops::Fill(stream_, 1.0f, ints),
              Says("fill: out is int32, want fp32 or bf16"));
}

TEST_F(ArgumentCheckTest, MissingTensorIsNamed) {
  EXPECT_THAT(ops::Scale(stream_, 1.0f, Tensor()), Says("scale: x is missing"));
}

TEST_F(ArgumentCheckTest, OtherDeviceIsNamed) {
  float value = 0.0f;
  const Tensor other(&value, DType::kFloat32, {1, 1}, DeviceKind::kCuda);
  EXPECT_THAT(ops::Zero(stream_, other),
              Says("zero: out is in cuda memory, the stream is of cpu"));
}

TEST_F(ArgumentCheckTest, PaddedVectorIsRefused) {
  OwnedTensor loss = Upload(stream_, Matrix(4, 1), DType::kFloat32);
  OwnedTensor target = UploadInts(stream_, {0, 0, 0, 0});
  EXPECT_THAT(
      ops::CrossEntropy(stream_, x_, target, nullptr, LogitsGradient::kNone,
                        loss, Tensor()),
      Says("cross-entropy: loss has rows 16 elements apart, want it dense"));
}

TEST_F(ArgumentCheckTest, GradientInPlaceNeedsScalars) {
  OwnedTensor loss = EmptyVector(stream_, 4, DType::kFloat32);
  OwnedTensor target = UploadInts(stream_, {0, 0, 0, 0});
  EXPECT_THAT(ops::CrossEntropy(stream_, x_, target, nullptr,
                                LogitsGradient::kInPlace, loss, Tensor()),
              Says("cross-entropy: step scalars is missing"));
}

TEST_F(ArgumentCheckTest, MatmulNamesTheTransposedOperand) {
  OwnedTensor w = Upload(stream_, Matrix(3, 5), DType::kFloat32);
  OwnedTensor out = Upload(stream_, Matrix(4, 3), DType::kFloat32);
  EXPECT_THAT(ops::Matmul(stream_, x_, Transpose::kNo, w, Transpose::kYes,
                          Tensor(), Accumulate::kNo, out),
              Says("matmul: b, transposed, is (3, 5), want (3, 6)"));
}

TEST_F(ArgumentCheckTest, MatmulTakesNoBiasWhileAccumulating) {
  OwnedTensor w = Upload(stream_, Matrix(3, 6), DType::kFloat32);
  OwnedTensor out = Upload(stream_, Matrix(4, 3), DType::kFloat32);
  OwnedTensor bias = EmptyVector(stream_, 3, DType::kFloat32);
  EXPECT_THAT(ops::Matmul(stream_, x_, Transpose::kNo, w, Transpose::kYes, bias,
                          Accumulate::kYes, out),
              Says("matmul: a bias and accumulation exclude each other"));
}

TEST_F(ArgumentCheckTest, MatmulOfFp32GivesNoBf16) {
  EXPECT_THAT(ops::Matmul(stream_, x_, Transpose::kNo, x_, Transpose::kYes,
                          Tensor(), Accumulate::kNo,
                          Upload(stream_, Matrix(4, 4), DType::kBFloat16)),
              Says("matmul: out is bf16, want fp32 as a is fp32"));
}

TEST_F(ArgumentCheckTest, RotaryWantsWholeEvenHeads) {
  OwnedTensor position = UploadInts(stream_, {0, 1, 2, 3});
  EXPECT_THAT(ops::Rotary(stream_, x_, 3, 1e4, position,
                          ops::RotaryDirection::kForward),
              Says("rotary: head width is 3, want it positive and even"));
  EXPECT_THAT(ops::Rotary(stream_, x_, 4, 1e4, position,
                          ops::RotaryDirection::kForward),
              Says("rotary: x has 6 columns, want whole heads of 4"));
}

TEST_F(ArgumentCheckTest, EmbeddingTakesBf16WeightsForBf16Only) {
  OwnedTensor token = UploadInts(stream_, {0, 1, 2, 3});
  EXPECT_THAT(
      ops::EmbeddingForward(stream_, token, 0, Tensor(), bf16_, Tensor(),
                            Dropout(), x_),
      Says("embedding forward: tokens_weight is bf16 and out fp32, want one "
           "type, or fp32 weights"));
}

}  // namespace
}  // namespace lockstep
