// One rank against many: whatever the layout, first-step gradients, losses and
// weights are those of one rank, with dropout, clipping, accumulation, batches
// that don't divide evenly and unequal valid tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/logical_tensor.h"
#include "common/model/memory_count.h"
#include "tests/parity/layout_run.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace testing {
namespace {

struct LayoutCase {
  std::string name;
  LayoutRun run;
};

std::ostream& operator<<(std::ostream& out, const LayoutCase& layout) {
  return out << layout.name;
}

constexpr int kSteps = 4;

class LayoutParityTest : public ::testing::TestWithParam<LayoutCase> {};

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
  LayoutRun one = many;
  one.layout = OneRank(one.global_batch);
  ASSERT_OK_AND_ASSIGN(const LayoutResult want, RunLayout(one));
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

TEST_P(LayoutParityTest, GivesTheSameBitsTwice) {
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

LayoutRun MakeRun(v1::ModelFamily family, int64_t dp, int64_t fsdp,
                  int64_t zero_stage, int64_t micro_batch) {
  LayoutRun run;
  run.model = SmallModel(family, v1::TASK_LANGUAGE_MODEL);
  run.training.seed = 5;
  run.training.optimizer.learning_rate = 1e-3;
  run.training.clip_grad_norm = 0.5;
  run.layout = OneRank(micro_batch);
  run.layout.set_dp(dp);
  run.layout.set_fsdp(fsdp);
  run.layout.set_zero_stage(zero_stage);
  run.steps = kSteps;
  return run;
}

// Tensor parallelism, with and without cutting the sequence: heads,
// feed-forward width, vocabulary and rows that don't divide evenly, and mixes.
std::vector<LayoutCase> TensorCases() {
  std::vector<LayoutCase> cases;
  const auto add = [&](const std::string& what, const LayoutRun& run) {
    cases.push_back({absl::StrCat(what, NameOf(run.layout)), run});
  };
  for (const auto& [family, word] :
       {std::pair{v1::MODEL_FAMILY_GPT2, "Gpt2"},
        std::pair{v1::MODEL_FAMILY_LLAMA, "Llama"}}) {
    for (const bool sequence : {false, true}) {
      const auto make = [&, family = family](int64_t dp, int64_t fsdp,
                                             int64_t stage, int64_t tp,
                                             int64_t micro_batch) {
        LayoutRun run = MakeRun(family, dp, fsdp, stage, micro_batch);
        run.layout.set_tp(tp);
        run.layout.set_sequence_parallel(sequence);
        if (tp == 3) {
          // 6 heads of 8, 3 key heads of them in llama: 2 and 1 a rank.
          run.model.heads = 6;
          run.model.head_width = 8;
          run.model.kv_heads = family == v1::MODEL_FAMILY_LLAMA ? 3 : 6;
        }
        return run;
      };
      add(word, make(1, 1, 3, 2, 4));
      add(word, make(1, 1, 3, 3, 3));
      add(word, make(2, 1, 3, 2, 2));
      for (const int64_t stage : {1, 2, 3}) add(word, make(1, 2, stage, 2, 3));
      LayoutRun uneven = make(1, 1, 3, 2, 10);
      uneven.model.heads = 5;
      uneven.model.kv_heads = 5;
      uneven.model.head_width = 10;
      add(absl::StrCat(word, "FiveHeads"), uneven);
      LayoutRun few = make(1, 3, 3, 2, 1);
      few.global_batch = 2;
      add(absl::StrCat(word, "FewSamples"), few);
      LayoutRun bf16 = make(1, 2, 3, 2, 2);
      bf16.training.precision = v1::PRECISION_BF16;
      add(absl::StrCat(word, "Bf16"), bf16);
      LayoutRun classifier = make(2, 1, 3, 2, 2);
      classifier.model = SmallModel(family, v1::TASK_CLASSIFICATION);
      add(absl::StrCat(word, "Classifier"), classifier);
      LayoutRun lamb = make(1, 2, 2, 2, 3);
      lamb.training.optimizer.name = v1::OPTIMIZER_NAME_LAMB;
      lamb.training.optimizer.learning_rate = 0.05;
      add(absl::StrCat(word, "Lamb"), lamb);
      LayoutRun lars = make(1, 1, 2, 2, 3);
      lars.training.optimizer.name = v1::OPTIMIZER_NAME_LARS;
      lars.training.optimizer.learning_rate = 10.0;
      add(absl::StrCat(word, "Lars"), lars);
      LayoutRun tied = make(1, 1, 3, 2, 4);
      tied.model.tied_embeddings = !tied.model.tied_embeddings;
      add(absl::StrCat(word, tied.model.tied_embeddings ? "Tied" : "Untied"),
          tied);
    }
  }
  return cases;
}

// Pipelines: every schedule, with more and fewer micro-batches than stages,
// stages that differ, embedding and head alone, ties, and mixes.
std::vector<LayoutCase> PipelineCases() {
  std::vector<LayoutCase> cases;
  const auto add = [&](const std::string& what, const LayoutRun& run) {
    cases.push_back({absl::StrCat(what, NameOf(run.layout)), run});
  };
  for (const auto& [family, word] :
       {std::pair{v1::MODEL_FAMILY_GPT2, "Gpt2"},
        std::pair{v1::MODEL_FAMILY_LLAMA, "Llama"}}) {
    for (const v1::PipelineSchedule schedule :
         {v1::PIPELINE_SCHEDULE_GPIPE, v1::PIPELINE_SCHEDULE_1F1B,
          v1::PIPELINE_SCHEDULE_INTERLEAVED_1F1B,
          v1::PIPELINE_SCHEDULE_ZERO_BUBBLE}) {
      const bool interleaved =
          schedule == v1::PIPELINE_SCHEDULE_INTERLEAVED_1F1B;
      const auto make = [&, family = family](int64_t dp, int64_t fsdp,
                                             int64_t stage, int64_t pp,
                                             int64_t micro_batch) {
        LayoutRun run = MakeRun(family, dp, fsdp, stage, micro_batch);
        run.layout.set_pp(pp);
        run.layout.set_schedule(schedule);
        run.layout.set_virtual_stages(interleaved ? 2 : 1);
        run.model.layers = interleaved ? 5 : 3;
        return run;
      };
      add(word, make(1, 1, 3, 2, 3));
      add(word, make(1, 1, 3, 3, 1));
      // One micro-batch.
      add(word, make(1, 1, 3, 2, 10));
      add(word, make(2, 1, 3, 2, 1));
      for (const int64_t stage : {1, 2, 3}) add(word, make(1, 2, stage, 2, 2));
      LayoutRun tied = make(1, 2, 2, 2, 3);
      tied.model.tied_embeddings = !tied.model.tied_embeddings;
      add(absl::StrCat(word, tied.model.tied_embeddings ? "Tied" : "Untied"),
          tied);
      LayoutRun tensor = make(1, 1, 3, 2, 3);
      tensor.layout.set_tp(2);
      tensor.layout.set_sequence_parallel(true);
      add(word, tensor);
      LayoutRun classifier = make(1, 1, 3, 2, 2);
      const int64_t layers = classifier.model.layers;
      classifier.model = SmallModel(family, v1::TASK_CLASSIFICATION);
      classifier.model.layers = layers;
      add(absl::StrCat(word, "Classifier"), classifier);
      LayoutRun full = make(1, 2, 3, 2, 2);
      full.layout.set_activation_checkpoint(v1::ACTIVATION_CHECKPOINT_FULL);
      add(word, full);
      LayoutRun selective = make(1, 1, 3, 2, 2);
      selective.layout.set_activation_checkpoint(
          v1::ACTIVATION_CHECKPOINT_SELECTIVE);
      add(word, selective);
      LayoutRun bf16 = make(1, 1, 3, 2, 2);
      bf16.training.precision = v1::PRECISION_BF16;
      add(absl::StrCat(word, "Bf16"), bf16);
      LayoutRun lamb = make(1, 2, 1, 2, 3);
      lamb.training.optimizer.name = v1::OPTIMIZER_NAME_LAMB;
      lamb.training.optimizer.learning_rate = 0.05;
      add(absl::StrCat(word, "Lamb"), lamb);
      if (interleaved) continue;
      // Embedding, each block and head alone.
      add(word, make(1, 1, 3, 5, 2));
      LayoutRun few = make(1, 3, 3, 2, 1);
      few.global_batch = 2;
      add(absl::StrCat(word, "FewSamples"), few);
    }
    // All together, on 8 ranks.
    LayoutRun all = MakeRun(family, 1, 2, 3, 2);
    all.layout.set_pp(2);
    all.layout.set_tp(2);
    all.layout.set_sequence_parallel(true);
    all.layout.set_schedule(v1::PIPELINE_SCHEDULE_ZERO_BUBBLE);
    add(word, all);
    LayoutRun hybrid = MakeRun(family, 2, 2, 2, 1);
    hybrid.layout.set_pp(2);
    hybrid.layout.set_schedule(v1::PIPELINE_SCHEDULE_1F1B);
    add(word, hybrid);
  }
  return cases;
}

// Context parallelism of both kinds: several segments, of lengths that don't
// divide, across chunks; and mixes.
std::vector<LayoutCase> ContextCases() {
  std::vector<LayoutCase> cases;
  const auto add = [&](const std::string& what, const LayoutRun& run) {
    cases.push_back({absl::StrCat(what, NameOf(run.layout)), run});
  };
  for (const auto& [family, word] :
       {std::pair{v1::MODEL_FAMILY_GPT2, "Gpt2"},
        std::pair{v1::MODEL_FAMILY_LLAMA, "Llama"}}) {
    for (const v1::ContextParallelKind kind :
         {v1::CONTEXT_PARALLEL_KIND_RING, v1::CONTEXT_PARALLEL_KIND_ULYSSES}) {
      const auto make = [&, family = family](int64_t dp, int64_t fsdp,
                                             int64_t stage, int64_t cp,
                                             int64_t micro_batch) {
        LayoutRun run = MakeRun(family, dp, fsdp, stage, micro_batch);
        run.layout.set_cp(cp);
        run.layout.set_cp_kind(kind);
        if (cp == 3) {
          run.model.heads = 6;
          run.model.head_width = 8;
          run.model.kv_heads = family == v1::MODEL_FAMILY_LLAMA ? 3 : 6;
        }
        return run;
      };
      for (const int64_t stage : {1, 2, 3}) add(word, make(1, 1, stage, 2, 3));
      add(word, make(1, 1, 3, 3, 10));
      add(word, make(2, 1, 3, 2, 1));
      add(word, make(1, 2, 2, 2, 2));
      LayoutRun long_sequence = make(1, 1, 3, 2, 1);
      long_sequence.length = 39;
      long_sequence.global_batch = 4;
      add(absl::StrCat(word, "Long"), long_sequence);
      LayoutRun tensor = make(1, 1, 3, 2, 3);
      tensor.layout.set_tp(2);
      tensor.layout.set_sequence_parallel(true);
      tensor.model.kv_heads = 4;
      add(word, tensor);
      LayoutRun pipeline = make(1, 1, 3, 2, 2);
      pipeline.layout.set_pp(2);
      pipeline.layout.set_schedule(v1::PIPELINE_SCHEDULE_1F1B);
      add(word, pipeline);
      LayoutRun bf16 = make(1, 1, 3, 2, 4);
      bf16.training.precision = v1::PRECISION_BF16;
      add(absl::StrCat(word, "Bf16"), bf16);
      LayoutRun lamb = make(1, 2, 3, 2, 3);
      lamb.training.optimizer.name = v1::OPTIMIZER_NAME_LAMB;
      lamb.training.optimizer.learning_rate = 0.05;
      add(absl::StrCat(word, "Lamb"), lamb);
      LayoutRun selective = make(1, 1, 3, 2, 3);
      selective.layout.set_activation_checkpoint(
          v1::ACTIVATION_CHECKPOINT_SELECTIVE);
      add(word, selective);
      LayoutRun full = make(1, 1, 3, 2, 3);
      full.layout.set_activation_checkpoint(v1::ACTIVATION_CHECKPOINT_FULL);
      add(word, full);
    }
    LayoutRun four = MakeRun(family, 1, 1, 3, 2);
    four.layout.set_cp(4);
    four.layout.set_cp_kind(v1::CONTEXT_PARALLEL_KIND_RING);
    add(word, four);
    LayoutRun all = MakeRun(family, 1, 1, 3, 2);
    all.layout.set_cp(2);
    all.layout.set_cp_kind(v1::CONTEXT_PARALLEL_KIND_RING);
    all.layout.set_tp(2);
    all.layout.set_sequence_parallel(true);
    all.layout.set_pp(2);
    all.layout.set_schedule(v1::PIPELINE_SCHEDULE_ZERO_BUBBLE);
    add(word, all);
  }
  return cases;
}

std::vector<LayoutCase> Cases() {
  std::vector<LayoutCase> cases;
  const auto add = [&](const std::string& what, const LayoutRun& run) {
    cases.push_back({absl::StrCat(what, NameOf(run.layout)), run});
  };
  for (const auto& [family, word] :
       {std::pair{v1::MODEL_FAMILY_GPT2, "Gpt2"},
        std::pair{v1::MODEL_FAMILY_LLAMA, "Llama"}}) {
    add(word, MakeRun(family, 3, 1, 3, 2));
    for (const int64_t stage : {1, 2, 3}) {
      add(word, MakeRun(family, 1, 2, stage, 5));
      // 10 samples on 4 ranks: some have a micro-batch less than others.
      add(word, MakeRun(family, 1, 4, stage, 1));
      add(word, MakeRun(family, 2, 2, stage, 1));
    }
    // No segment divides by 5.
    add(word, MakeRun(family, 1, 5, 3, 1));
    // More ranks than samples: some ranks only take part.
    LayoutRun few = MakeRun(family, 2, 3, 3, 1);
    few.global_batch = 5;
    add(absl::StrCat(word, "FewSamples"), few);
    for (const int64_t stage : {1, 2, 3}) {
      LayoutRun bf16 = MakeRun(family, 1, 3, stage, 2);
      bf16.training.precision = v1::PRECISION_BF16;
      add(absl::StrCat(word, "Bf16"), bf16);
      LayoutRun classifier = MakeRun(family, 1, 3, stage, 2);
      classifier.model = SmallModel(family, v1::TASK_CLASSIFICATION);
      add(absl::StrCat(word, "Classifier"), classifier);
      LayoutRun lamb = MakeRun(family, 2, 2, stage, 3);
      lamb.training.optimizer.name = v1::OPTIMIZER_NAME_LAMB;
      // Large enough that a wrong trust ratio shows in the losses.
      lamb.training.optimizer.learning_rate = 0.05;
      add(absl::StrCat(word, "Lamb"), lamb);
      LayoutRun lars = MakeRun(family, 1, 3, stage, 4);
      lars.training.optimizer.name = v1::OPTIMIZER_NAME_LARS;
      lars.training.optimizer.learning_rate = 10.0;
      add(absl::StrCat(word, "Lars"), lars);
      LayoutRun tied = MakeRun(family, 1, 3, stage, 4);
      tied.model.tied_embeddings = !tied.model.tied_embeddings;
      add(absl::StrCat(word, tied.model.tied_embeddings ? "Tied" : "Untied"),
          tied);
    }
  }
  for (const LayoutCase& layout : TensorCases()) cases.push_back(layout);
  for (const LayoutCase& layout : PipelineCases()) cases.push_back(layout);
  for (const LayoutCase& layout : ContextCases()) cases.push_back(layout);
  return cases;
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

INSTANTIATE_TEST_SUITE_P(
    Layouts, LayoutParityTest, ::testing::ValuesIn(Cases()),
    [](const ::testing::TestParamInfo<LayoutCase>& layout) {
      return layout.param.name;
    });

}  // namespace
}  // namespace testing
}  // namespace lockstep
