// Whole small models against an independent fp64 forward pass and its central
// differences.
#include "worker/nn/transformer_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "common/spec/job_spec.h"
#include "common/status_macros.h"
#include "kernels/device.h"
#include "kernels/ops/elementwise.h"
#include "tests/testing/reference_model.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

// The order in which units are left.
class RecordingObserver : public NoObserver {
 public:
  absl::Status AfterUnit(int unit, Pass pass) override {
    (pass == Pass::kForward ? forward : backward).push_back(unit);
    return absl::OkStatus();
  }
  std::vector<int> forward;
  std::vector<int> backward;
};

struct ModelCase {
  std::string name;
  ModelSpec spec;
  DType dtype = DType::kFloat32;
};

std::ostream& operator<<(std::ostream& out, const ModelCase& model) {
  return out << model.name;
}

ModelSpec SmallSpec(ModelFamily family, Task task) {
  ModelSpec spec;
  spec.family = family;
  spec.task = task;
  spec.layers = 2;
  spec.width = 24;
  spec.heads = 4;
  spec.kv_heads = family == v1::MODEL_FAMILY_LLAMA ? 2 : 4;
  spec.head_width = 6;
  spec.feed_forward_width = 37;
  spec.vocabulary = 19;
  spec.maximum_positions = 11;
  spec.classes = task == v1::TASK_CLASSIFICATION ? 3 : 0;
  spec.tied_embeddings = family == v1::MODEL_FAMILY_GPT2;
  spec.attention_bias = family == v1::MODEL_FAMILY_GPT2;
  return spec;
}

// Three samples of unequal length; the second holds two documents. Every
// seventh target is invalid.
MicroBatch RaggedBatch(const ModelSpec& spec) {
  std::mt19937 random(7);
  MicroBatch batch;
  batch.sample_bounds = {0, 5, 14, 17};
  batch.segment_bounds = {0, 5, 9, 14, 17};
  batch.max_segment_rows = 5;
  for (size_t s = 0; s + 1 < batch.segment_bounds.size(); ++s) {
    for (int32_t n = batch.segment_bounds[s]; n < batch.segment_bounds[s + 1];
         ++n) {
      batch.tokens.push_back(random() % spec.vocabulary);
      batch.positions.push_back(n - batch.segment_bounds[s]);
      batch.sample_positions.push_back(n);
      batch.samples.push_back(static_cast<uint32_t>(s));
    }
  }
  const bool classify = spec.task == v1::TASK_CLASSIFICATION;
  const size_t targets = classify ? 3 : batch.tokens.size();
  for (size_t i = 0; i < targets; ++i) {
    const int32_t range =
        static_cast<int32_t>(classify ? spec.classes : spec.vocabulary);
    batch.targets.push_back(
        !classify && i % 7 == 3 ? -1 : static_cast<int32_t>(random() % range));
  }
  return batch;
}

Portion AllUnits(const ModelSpec& spec) { return {0, spec.layers + 2}; }

absl::Status ForwardBackward(const TransformerModel& model,
                             const PassContext& pass, LossSums& sums,
                             UnitObserver& observer) {
  ModelActivations saved;
  RETURN_IF_ERROR(model.Forward(pass, OwnedTensor(), saved, observer).status());
  return model.Backward(pass, saved, OwnedTensor(), sums, observer).status();
}

class TransformerModelTest : public ::testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
    spec_ = GetParam().spec;
    DeviceOptions options;
    options.cpu_level = DetectCpuLevel();
    ASSERT_OK_AND_ASSIGN(device_, MakeCpuDevice(options));
    ASSERT_OK_AND_ASSIGN(
        store_,
        ParameterStore::Create(stream(), DescribeModel(spec_), GetParam().dtype,
                               GradientStorage::kAllocate));
    store_->Initialize(3);
    // Weights larger than the usual start, so that every path matters.
    std::mt19937 random(14);
    std::normal_distribution<float> normal;
    for (float& value : Values(store_->master())) {
      value = 4.0f * value + 0.1f * normal(random);
    }
    ASSERT_OK(store_->RefreshCompute(stream()));
    for (const LogicalTensor& tensor : store_->tensors()) {
      std::vector<double>& values = parameters_[tensor.name];
      for (int64_t e = 0; e < tensor.elements(); ++e) {
        values.push_back(Used(tensor, e));
      }
    }
    batch_ = RaggedBatch(spec_);
    const int64_t valid =
        std::count_if(batch_.targets.begin(), batch_.targets.end(),
                      [](int32_t target) { return target >= 0; });
    scalars_.inverse_valid_tokens = 1.0f / static_cast<float>(valid);
    valid_ = static_cast<double>(valid);
  }

  // The value that the model computes with: matrices are rounded to bf16.
  double Used(const LogicalTensor& tensor, int64_t element) const {
    const Tensor used = store_->Get(tensor.name).value();
    if (used.dtype() == DType::kFloat32) return used.data<float>()[element];
    const uint32_t bits = uint32_t{used.data<uint16_t>()[element]} << 16;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }

  Stream& stream() { return device_->stream(); }
  static absl::Span<float> Values(const Tensor& tensor) {
    return absl::MakeSpan(tensor.data<float>(), tensor.elements());
  }
  double GradientTolerance() const {
    // Relative to a tensor's largest gradient. fp32: some hundred roundings of
    // 6e-8 in sums and exponentials; bf16: a few roundings of 2^-9.
    return GetParam().dtype == DType::kFloat32 ? 2e-5 : 6e-2;
  }

  ModelSpec spec_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<ParameterStore> store_;
  ReferenceParameters parameters_;
  MicroBatch batch_;
  LocalRegions regions_;
  LocalAttention attention_;
  StepScalars scalars_;
  double valid_ = 0.0;
};

TEST_P(TransformerModelTest, LossAndGradientsAgreeWithFp64Differences) {
  const TransformerModel model(PartOf(spec_), AllUnits(spec_), *store_);
  ASSERT_OK_AND_ASSIGN(const DeviceBatch staged,
                       StageBatch(stream(), batch_, BatchPlace()));
  const PassContext pass = {stream(), GetParam().dtype, &scalars_,
                            staged,   regions_,         attention_};
  LossSums sums;
  RecordingObserver observer;
  ASSERT_OK(ForwardBackward(model, pass, sums, observer));
  const double expected = ReferenceLoss(spec_, parameters_, batch_);
  const double loss_tolerance =
      GetParam().dtype == DType::kFloat32 ? 1e-5 : 2e-2;
  EXPECT_NEAR(sums.loss / valid_, expected, loss_tolerance * expected);
  EXPECT_EQ(observer.forward, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(observer.backward, (std::vector<int>{3, 2, 1, 0}));

  // Sums of terms as large as the other gradients round even where they cancel:
  // keys' biases shift all scores of a query alike and have none at all.
  double square = 0.0;
  for (const float value : Values(store_->gradient())) square += value * value;
  const double rounding = 1e-2 * GradientTolerance() * std::sqrt(square);

  std::mt19937 random(5);
  for (size_t i = 0; i < store_->tensors().size(); ++i) {
    const LogicalTensor& tensor = store_->tensors()[i];
    const FlatRange range = store_->range(static_cast<int>(i));
    const float* gradient = store_->gradient().data<float>() + range.begin;
    double largest = 0.0;
    for (int64_t e = 0; e < tensor.elements(); ++e) {
      largest = std::max(largest, std::abs(static_cast<double>(gradient[e])));
    }
    for (int probe = 0; probe < 12; ++probe) {
      const size_t element = random() % tensor.elements();
      const double want = ReferenceGradient(spec_, parameters_, batch_,
                                            tensor.name, element, 1e-5);
      EXPECT_NEAR(gradient[element], want,
                  GradientTolerance() * largest + rounding)
          << tensor.name << "[" << element << "]";
    }
  }
}

// With dropout's bits held fixed the loss is a function of the weights like any
// other: along a tensor's gradient it rises by the gradient's squared norm.
TEST_P(TransformerModelTest, GradientsWithDropoutAgreeWithDifferences) {
  if (GetParam().dtype != DType::kFloat32) {
    GTEST_SKIP() << "differences of bf16 losses are too coarse";
  }
  const TransformerModel model(PartOf(spec_), AllUnits(spec_), *store_);
  ASSERT_OK_AND_ASSIGN(const DeviceBatch staged,
                       StageBatch(stream(), batch_, BatchPlace()));
  PassContext pass = {stream(), DType::kFloat32, &scalars_,
                      staged,   regions_,        attention_};
  pass.dropout = 0.3f;
  pass.seed = 9;
  NoObserver observer;
  const auto loss = [&] {
    LossSums sums;
    EXPECT_OK(store_->ZeroGradients(stream()));
    EXPECT_OK(ForwardBackward(model, pass, sums, observer));
    return sums.loss / valid_;
  };
  loss();
  const absl::Span<float> all = Values(store_->gradient());
  const std::vector<float> gradient(all.begin(), all.end());
  double whole = 0.0;
  for (const float value : gradient) whole += double{value} * value;
  for (size_t i = 0; i < store_->tensors().size(); ++i) {
    const FlatRange range = store_->range(static_cast<int>(i));
    double square = 0.0;
    for (int64_t e = range.begin; e < range.end; ++e) {
      square += double{gradient[e]} * gradient[e];
    }
    // Keys' biases have no gradient.
    if (square < 1e-8 * whole) continue;
    // A step along the unit gradient that is small against the weights.
    const double step = 3e-4 / std::sqrt(square);
    const absl::Span<float> masters = Values(store_->master());
    const std::vector<float> before(masters.begin(), masters.end());
    const auto loss_at = [&](double factor) {
      for (int64_t e = range.begin; e < range.end; ++e) {
        masters[e] = static_cast<float>(before[e] + factor * gradient[e]);
      }
      return loss();
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    std::copy(before.begin(), before.end(), masters.begin());
    // fp32 losses round by about 1e-6.
    EXPECT_NEAR(slope, square, 0.02 * square + 2e-6 / step)
        << store_->tensors()[i].name;
  }
}

TEST_P(TransformerModelTest, EvaluationGivesTheTrainingLossWithoutDropout) {
  const TransformerModel model(PartOf(spec_), AllUnits(spec_), *store_);
  ASSERT_OK_AND_ASSIGN(const DeviceBatch staged,
                       StageBatch(stream(), batch_, BatchPlace()));
  const PassContext pass = {stream(), GetParam().dtype, &scalars_,
                            staged,   regions_,         attention_};
  LossSums trained, evaluated;
  NoObserver observer;
  ASSERT_OK(ForwardBackward(model, pass, trained, observer));
  ASSERT_OK(model.Evaluate(pass, OwnedTensor(), evaluated, observer).status());
  EXPECT_DOUBLE_EQ(trained.loss, evaluated.loss);
  EXPECT_EQ(trained.correct, evaluated.correct);
}

TEST_P(TransformerModelTest, ActivationsAreFreedAfterEachPass) {
  const TransformerModel model(PartOf(spec_), AllUnits(spec_), *store_);
  const int64_t before = device_->allocator().Use().total.live_bytes;
  {
    ASSERT_OK_AND_ASSIGN(const DeviceBatch staged,
                         StageBatch(stream(), batch_, BatchPlace()));
    const PassContext pass = {stream(), GetParam().dtype, &scalars_, staged,
                              regions_, attention_,       0.1f,      9};
    LossSums sums;
    NoObserver observer;
    ASSERT_OK(ForwardBackward(model, pass, sums, observer));
    ASSERT_OK(model.Evaluate(pass, OwnedTensor(), sums, observer).status());
  }
  const MemoryUse use = device_->allocator().Use();
  EXPECT_EQ(
      use.by_category[static_cast<int>(MemoryCategory::kActivation)].live_bytes,
      0);
  EXPECT_EQ(use.total.live_bytes, before);
}

TEST_P(TransformerModelTest, MicroBatchesAddUpToTheBatch) {
  // The same batch twice gives twice the gradient.
  const TransformerModel model(PartOf(spec_), AllUnits(spec_), *store_);
  ASSERT_OK_AND_ASSIGN(const DeviceBatch staged,
                       StageBatch(stream(), batch_, BatchPlace()));
  const PassContext pass = {stream(), GetParam().dtype, &scalars_,
                            staged,   regions_,         attention_};
  LossSums sums;
  NoObserver observer;
  ASSERT_OK(ForwardBackward(model, pass, sums, observer));
  const absl::Span<float> gradient = Values(store_->gradient());
  const std::vector<float> once(gradient.begin(), gradient.end());
  ASSERT_OK(ForwardBackward(model, pass, sums, observer));
  for (size_t i = 0; i < once.size(); ++i) {
    ASSERT_NEAR(gradient[i], 2.0f * once[i], 1e-6f + 1e-4f * std::abs(once[i]));
  }
}

std::vector<ModelCase> Cases() {
  std::vector<ModelCase> cases;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const std::string suffix = dtype == DType::kFloat32 ? "_Fp32" : "_Bf16";
    cases.push_back({"Gpt2" + suffix,
                     SmallSpec(v1::MODEL_FAMILY_GPT2, v1::TASK_LANGUAGE_MODEL),
                     dtype});
    cases.push_back({"Llama" + suffix,
                     SmallSpec(v1::MODEL_FAMILY_LLAMA, v1::TASK_LANGUAGE_MODEL),
                     dtype});
    cases.push_back({"Gpt2Classifier" + suffix,
                     SmallSpec(v1::MODEL_FAMILY_GPT2, v1::TASK_CLASSIFICATION),
                     dtype});
    cases.push_back({"LlamaClassifier" + suffix,
                     SmallSpec(v1::MODEL_FAMILY_LLAMA, v1::TASK_CLASSIFICATION),
                     dtype});
  }
  ModelCase tied = {"LlamaTied_Fp32",
                    SmallSpec(v1::MODEL_FAMILY_LLAMA, v1::TASK_LANGUAGE_MODEL)};
  tied.spec.tied_embeddings = true;
  tied.spec.attention_bias = true;
  cases.push_back(tied);
  ModelCase untied = {"Gpt2Untied_Fp32", SmallSpec(v1::MODEL_FAMILY_GPT2,
                                                   v1::TASK_LANGUAGE_MODEL)};
  untied.spec.tied_embeddings = false;
  untied.spec.attention_bias = false;
  cases.push_back(untied);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, TransformerModelTest,
                         ::testing::ValuesIn(Cases()),
                         [](const ::testing::TestParamInfo<ModelCase>& model) {
                           return model.param.name;
                         });

}  // namespace
}  // namespace lockstep
