// One rank against many: whatever the layout, first-step gradients, losses and
// weights are those of one rank, with dropout, clipping, accumulation, batches
// that don't divide evenly and unequal valid tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/logical_tensor.h"
#include "common/model/memory_count.h"
#include "common/status_macros.h"
#include "tests/parity/layout_cases.h"
#include "tests/parity/layout_run.h"
#include "tests/testing/full_test.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace testing {
namespace {

class LayoutParityTest : public ::testing::TestWithParam<LayoutCase> {};

// The same job on one rank, remembered: many layouts are held against it.
absl::StatusOr<LayoutResult> RunOnOneRank(const LayoutRun& many) {
  LayoutRun one = many;
  one.layout = OneRank(one.global_batch);
  const ModelSpec& model = one.model;
  const TrainingSpec& training = one.training;
  const std::string key = absl::StrCat(
      model.family, " ", model.task, " ", model.layers, " ", model.heads, " ",
      model.kv_heads, " ", model.head_width, " ", model.tied_embeddings, " ",
      training.precision, " ", training.optimizer.name, " ",
      training.optimizer.learning_rate, " ", one.global_batch, " ", one.length,
      " ", one.distinct, " ", one.steps);
  static auto& results = *new std::map<std::string, LayoutResult>;
  const auto found = results.find(key);
  if (found != results.end()) return found->second;
  ASSIGN_OR_RETURN(LayoutResult result, RunLayout(one));
  return results.emplace(key, std::move(result)).first->second;
}

// Each gradient within `entry` of its tensor's largest entry and `whole` of the
// global norm.
void ExpectSameGradients(const ModelSpec& model, const std::vector<float>& want,
                         const std::vector<float>& got, double entry,
                         double whole) {
  ASSERT_EQ(got.size(), want.size());
  double norm = 0.0;
  for (const float value : want) norm += double{value} * value;
  norm = std::sqrt(norm);
  int64_t begin = 0;
  for (const LogicalTensor& tensor : DescribeModel(model)) {
    const int64_t end = begin + tensor.elements();
    double largest = 0.0;
    for (int64_t i = begin; i < end; ++i) {
      largest = std::max<double>(largest, std::abs(want[i]));
    }
    for (int64_t i = begin; i < end; ++i) {
      ASSERT_NEAR(got[i], want[i], entry * largest + whole * norm)
          << tensor.name << "[" << i - begin << "]";
    }
    begin = end;
  }
}

double NormOf(const std::vector<float>& values, int64_t begin, int64_t end) {
  double sum = 0.0;
  for (int64_t i = begin; i < end; ++i) sum += double{values[i]} * values[i];
  return std::sqrt(sum);
}

// What training did to each tensor is the same within `share` of it. Tensors
// whose gradient is nothing but rounding are left out: optimizers that divide
// by its size make steps of it (keys' biases).
void ExpectSameUpdates(const ModelSpec& model, const LayoutResult& want,
                       const LayoutResult& got, double share) {
  const auto elements = static_cast<int64_t>(want.masters.size());
  const double all = NormOf(want.gradients, 0, elements);
  std::vector<float> moved(elements), apart(elements);
  for (int64_t i = 0; i < elements; ++i) {
    moved[i] = want.masters[i] - want.start[i];
    apart[i] = want.masters[i] - got.masters[i];
  }
  int64_t begin = 0;
  for (const LogicalTensor& tensor : DescribeModel(model)) {
    const int64_t end = begin + tensor.elements();
    if (NormOf(want.gradients, begin, end) > 1e-5 * all) {
      EXPECT_LE(NormOf(apart, begin, end), share * NormOf(moved, begin, end))
          << tensor.name;
    }
    begin = end;
  }
}

TEST_P(LayoutParityTest, AgreesWithOneRank) {
  const LayoutRun& many = GetParam().run;
  ASSERT_OK_AND_ASSIGN(const LayoutResult want, RunOnOneRank(many));
  ASSERT_OK_AND_ASSIGN(const LayoutResult got, RunLayout(many));
  const bool bf16 = many.training.precision == v1::PRECISION_BF16;
  if (bf16) {
    ExpectSameGradients(many.model, want.gradients, got.gradients, 0.0, 1e-2);
  } else {
    ExpectSameGradients(many.model, want.gradients, got.gradients, 1e-5, 1e-7);
    ExpectSameUpdates(many.model, want, got, 2e-3);
  }
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t i = 0; i < want.losses.size(); ++i) {
    EXPECT_NEAR(got.losses[i] / want.losses[i], 1.0, bf16 ? 5e-3 : 1e-5)
        << "step " << i + 1;
    EXPECT_NEAR(got.norms[i] / want.norms[i], 1.0, bf16 ? 1e-2 : 1e-4)
        << "step " << i + 1;
  }
}

class LongLayoutTest : public LayoutParityTest {};

// The promise: the same loss curve, step by step, while the model learns.
TEST_P(LongLayoutTest, FollowsOneRankForFiftySteps) {
  LayoutRun many = GetParam().run;
  many.steps = 50;
  // Few enough to be learnt.
  many.distinct = many.global_batch;
  many.training.optimizer.learning_rate = 2e-3;
  ASSERT_OK_AND_ASSIGN(const LayoutResult want, RunOnOneRank(many));
  ASSERT_OK_AND_ASSIGN(const LayoutResult got, RunLayout(many));
  ASSERT_EQ(got.losses.size(), 50u);
  EXPECT_LT(want.losses.back(), want.losses.front() - 0.5);
  const bool bf16 = many.training.precision == v1::PRECISION_BF16;
  for (size_t i = 0; i < want.losses.size(); ++i) {
    EXPECT_NEAR(got.losses[i] / want.losses[i], 1.0, bf16 ? 5e-3 : 1e-5)
        << "step " << i + 1;
  }
}

class RepeatedLayoutTest : public LayoutParityTest {};

TEST_P(RepeatedLayoutTest, GivesTheSameBitsTwice) {
  ASSERT_OK_AND_ASSIGN(const LayoutResult first, RunLayout(GetParam().run));
  ASSERT_OK_AND_ASSIGN(const LayoutResult second, RunLayout(GetParam().run));
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.gradients, second.gradients);
  EXPECT_EQ(first.masters, second.masters);
}

class ActivationCheckpointTest : public LayoutParityTest {};

TEST_P(ActivationCheckpointTest, GivesTheSameBitsInLessMemory) {
  const LayoutRun& run = GetParam().run;
  LayoutRun without = run;
  without.layout.set_activation_checkpoint(v1::ACTIVATION_CHECKPOINT_NONE);
  ASSERT_OK_AND_ASSIGN(const LayoutResult want, RunLayout(without));
  ASSERT_OK_AND_ASSIGN(const LayoutResult got, RunLayout(run));
  EXPECT_EQ(got.losses, want.losses);
  EXPECT_EQ(got.gradients, want.gradients);
  EXPECT_EQ(got.masters, want.masters);
  // What the plan counts is what is saved, within 5 %.
  const auto peak = [](const LayoutResult& result) {
    return static_cast<double>(
        result.memory[0]
            .by_category[static_cast<size_t>(MemoryCategory::kActivation)]
            .peak_bytes);
  };
  const auto count = [](const LayoutRun& layout) {
    return static_cast<double>(
        CountMemory(layout.model, layout.training, layout.layout)
            .activations_bytes());
  };
  EXPECT_LT(peak(got), peak(want));
  EXPECT_LE(peak(got), count(run));
  EXPECT_NEAR(peak(got), count(run), 0.05 * count(run));
}

std::vector<LayoutCase> CheckpointCases() {
  std::vector<LayoutCase> cases;
  for (const auto& [family, word] :
       {std::pair{v1::MODEL_FAMILY_GPT2, "Gpt2"},
        std::pair{v1::MODEL_FAMILY_LLAMA, "Llama"}}) {
    for (const v1::ActivationCheckpoint checkpoint :
         {v1::ACTIVATION_CHECKPOINT_SELECTIVE,
          v1::ACTIVATION_CHECKPOINT_FULL}) {
      for (const v1::Precision precision :
           {v1::PRECISION_FP32, v1::PRECISION_BF16}) {
        LayoutRun run = MakeRun(family, 1, 2, 3, 4);
        run.model.layers = 8;
        run.global_batch = 8;
        run.training.precision = precision;
        run.length = 32;
        run.training.sequence_length = run.length;
        run.layout.set_activation_checkpoint(checkpoint);
        cases.push_back(
            {absl::StrCat(word,
                          precision == v1::PRECISION_BF16 ? "Bf16" : "Fp32",
                          NameOf(run.layout)),
             run});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(
    Modes, ActivationCheckpointTest, ::testing::ValuesIn(CheckpointCases()),
    [](const ::testing::TestParamInfo<LayoutCase>& layout) {
      return layout.param.name;
    });

// All layouts in the long form; some that cover most pairs and triples of
// features in the short one.
std::vector<LayoutCase> Cases() {
  return IsFullTest() ? AllCases() : Covering(AllCases(), 24);
}

std::vector<LayoutCase> LongCases() {
  std::vector<LayoutCase> cases;
  for (const LayoutCase& layout : AllCases()) {
    const LayoutRun& run = layout.run;
    if (run.training.optimizer.name == v1::OPTIMIZER_NAME_ADAMW &&
        run.model.task == v1::TASK_LANGUAGE_MODEL) {
      cases.push_back(layout);
    }
  }
  return Covering(cases, IsFullTest() ? 64 : 20);
}

std::string NameOfCase(const ::testing::TestParamInfo<LayoutCase>& layout) {
  return layout.param.name;
}

INSTANTIATE_TEST_SUITE_P(Layouts, LayoutParityTest,
                         ::testing::ValuesIn(Cases()), NameOfCase);

INSTANTIATE_TEST_SUITE_P(Layouts, LongLayoutTest,
                         ::testing::ValuesIn(LongCases()), NameOfCase);

INSTANTIATE_TEST_SUITE_P(Layouts, RepeatedLayoutTest,
                         ::testing::ValuesIn(Covering(AllCases(),
                                                      IsFullTest() ? 40 : 10)),
                         NameOfCase);

}  // namespace
}  // namespace testing
}  // namespace lockstep
