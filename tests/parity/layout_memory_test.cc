// What a rank keeps under sharding: model states follow ZeRO's formulas
// (Rajbhandari et al., arXiv:1910.02054, section 3 and figure 1), and gathered
// units and gradients under way stay within what the plan counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/logical_tensor.h"
#include "common/model/memory_count.h"
#include "tests/parity/layout_run.h"
#include "tests/testing/full_test.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace testing {
namespace {

// Bytes per parameter. fp32: weights, gradients, two moments. bf16: bf16
// weights, fp32 gradients, fp32 masters and two moments.
struct StateBytes {
  double weights;
  double gradients;
  double states;
};
StateBytes BytesOf(v1::Precision precision) {
  return precision == v1::PRECISION_BF16 ? StateBytes{2, 4, 12}
                                         : StateBytes{4, 4, 8};
}

double FormulaBytes(const StateBytes& bytes, int64_t stage, double ranks) {
  const double weights = bytes.weights / (stage >= 3 ? ranks : 1);
  const double gradients = bytes.gradients / (stage >= 2 ? ranks : 1);
  return weights + gradients + bytes.states / (stage >= 1 ? ranks : 1);
}

struct MemoryCase {
  v1::Precision precision;
  int64_t fsdp = 1;
  int64_t stage = 3;
  int64_t tp = 1;
  bool sequence_parallel = false;
  int64_t cp = 1;
  v1::ContextParallelKind cp_kind = v1::CONTEXT_PARALLEL_KIND_RING;
};

std::string NameOf(const ::testing::TestParamInfo<MemoryCase>& memory) {
  return absl::StrCat(
      memory.param.precision == v1::PRECISION_BF16 ? "Bf16" : "Fp32", "Fsdp",
      memory.param.fsdp, "Zero", memory.param.stage,
      memory.param.tp > 1 ? absl::StrCat("Tp", memory.param.tp) : "",
      memory.param.sequence_parallel ? "Seq" : "",
      memory.param.cp == 1 ? ""
      : memory.param.cp_kind == v1::CONTEXT_PARALLEL_KIND_RING
          ? absl::StrCat("Ring", memory.param.cp)
          : absl::StrCat("Ulysses", memory.param.cp));
}

class LayoutMemoryTest : public ::testing::TestWithParam<MemoryCase> {};

LayoutRun RunOf(const MemoryCase& memory) {
  LayoutRun run;
  run.model = SmallModel(v1::MODEL_FAMILY_LLAMA, v1::TASK_LANGUAGE_MODEL);
  // Large enough that shards' padding doesn't count.
  run.model.layers = 6;
  run.model.width = 128;
  run.model.head_width = 32;
  run.model.feed_forward_width = 344;
  run.model.vocabulary = 300;
  run.training.precision = memory.precision;
  run.training.sequence_length = 36;
  run.global_batch = 8;
  run.layout = OneRank(1);
  run.layout.set_fsdp(memory.fsdp);
  run.layout.set_zero_stage(memory.stage);
  run.layout.set_tp(memory.tp);
  run.layout.set_sequence_parallel(memory.sequence_parallel);
  run.layout.set_cp(memory.cp);
  run.layout.set_cp_kind(memory.cp_kind);
  return run;
}

int64_t Peak(const MemoryUse& use, MemoryCategory category) {
  return use.by_category[static_cast<size_t>(category)].peak_bytes;
}

TEST_P(LayoutMemoryTest, StatesFollowTheFormulas) {
  const LayoutRun run = RunOf(GetParam());
  ASSERT_OK_AND_ASSIGN(const LayoutResult result, RunLayout(run));
  const double want =
      static_cast<double>(ParameterCount(run.model)) *
      FormulaBytes(BytesOf(GetParam().precision), GetParam().stage,
                   static_cast<double>(GetParam().fsdp));
  for (const MemoryUse& use : result.memory) {
    const auto states =
        static_cast<double>(Peak(use, MemoryCategory::kParameter) +
                            Peak(use, MemoryCategory::kGradient) +
                            Peak(use, MemoryCategory::kOptimizerState));
    EXPECT_NEAR(states / want, 1.0, 0.02) << states << " bytes";
  }
}

TEST_P(LayoutMemoryTest, ThePlanCountsWhatIsKept) {
  const LayoutRun run = RunOf(GetParam());
  ASSERT_OK_AND_ASSIGN(const LayoutResult result, RunLayout(run));
  const v1::MemoryReport count =
      CountMemory(run.model, run.training, run.layout);
  for (const MemoryUse& use : result.memory) {
    EXPECT_EQ(Peak(use, MemoryCategory::kParameter), count.parameters_bytes());
    EXPECT_EQ(Peak(use, MemoryCategory::kGradient), count.gradients_bytes());
    EXPECT_EQ(Peak(use, MemoryCategory::kOptimizerState),
              count.optimizer_bytes());
    EXPECT_LE(Peak(use, MemoryCategory::kActivation),
              count.activations_bytes());
    EXPECT_LE(use.total.peak_bytes, count.peak_bytes());
  }
}

// Tensor and context parallelism: savings follow the plan's count within 5 %.
class TensorMemoryTest : public LayoutMemoryTest {};

TEST_P(TensorMemoryTest, SavingsFollowTheCount) {
  LayoutRun run = RunOf(GetParam());
  // Key heads for 4 ranks; whole sequences, so that the count is of what comes.
  run.model.kv_heads = 4;
  run.length = run.training.sequence_length;
  ASSERT_OK_AND_ASSIGN(const LayoutResult result, RunLayout(run));
  const v1::MemoryReport count =
      CountMemory(run.model, run.training, run.layout);
  // The last rank has the largest portions.
  const MemoryUse& use = result.memory[run.layout.tp() - 1];
  EXPECT_EQ(Peak(use, MemoryCategory::kParameter), count.parameters_bytes());
  EXPECT_EQ(Peak(use, MemoryCategory::kGradient), count.gradients_bytes());
  EXPECT_EQ(Peak(use, MemoryCategory::kOptimizerState),
            count.optimizer_bytes());
  for (const MemoryUse& rank : result.memory) {
    EXPECT_LE(Peak(rank, MemoryCategory::kActivation),
              count.activations_bytes());
    EXPECT_LE(rank.total.peak_bytes, count.peak_bytes());
  }
  const auto counted = static_cast<double>(count.activations_bytes());
  EXPECT_NEAR(static_cast<double>(Peak(use, MemoryCategory::kActivation)),
              counted, 0.05 * counted);
}

// Pipelines: each rank stays under the count, and the fullest is within 5 %.
class PipelineMemoryTest
    : public ::testing::TestWithParam<v1::PipelineSchedule> {};

TEST_P(PipelineMemoryTest, SavingsFollowTheCount) {
  LayoutRun run = RunOf({v1::PRECISION_FP32});
  run.length = run.training.sequence_length;
  run.training.global_batch = run.global_batch;
  run.layout.set_pp(2);
  run.layout.set_schedule(GetParam());
  if (GetParam() == v1::PIPELINE_SCHEDULE_INTERLEAVED_1F1B) {
    run.layout.set_virtual_stages(2);
  }
  ASSERT_OK_AND_ASSIGN(const LayoutResult result, RunLayout(run));
  const v1::MemoryReport count =
      CountMemory(run.model, run.training, run.layout);
  int64_t most = 0, activations = 0;
  for (const MemoryUse& use : result.memory) {
    EXPECT_LE(use.total.peak_bytes, count.peak_bytes());
    if (use.total.peak_bytes > most) {
      most = use.total.peak_bytes;
      activations = Peak(use, MemoryCategory::kActivation);
    }
  }
  const auto counted = static_cast<double>(count.peak_bytes());
  EXPECT_NEAR(static_cast<double>(most), counted, 0.05 * counted)
      << "activations " << activations << " of " << count.activations_bytes();
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, PipelineMemoryTest,
    ::testing::Values(v1::PIPELINE_SCHEDULE_GPIPE, v1::PIPELINE_SCHEDULE_1F1B,
                      v1::PIPELINE_SCHEDULE_INTERLEAVED_1F1B,
                      v1::PIPELINE_SCHEDULE_ZERO_BUBBLE),
    [](const ::testing::TestParamInfo<v1::PipelineSchedule>& schedule) {
      return absl::StrCat("Schedule", schedule.param);
    });

std::vector<MemoryCase> TensorCases() {
  std::vector<MemoryCase> cases;
  for (const v1::Precision precision :
       {v1::PRECISION_FP32, v1::PRECISION_BF16}) {
    if (precision == v1::PRECISION_BF16 && !IsFullTest()) continue;
    for (const bool sequence : {false, true}) {
      cases.push_back({precision, 1, 3, 2, sequence});
      cases.push_back({precision, 1, 3, 4, sequence});
      cases.push_back({precision, 2, 3, 2, sequence});
    }
    for (const v1::ContextParallelKind kind :
         {v1::CONTEXT_PARALLEL_KIND_RING, v1::CONTEXT_PARALLEL_KIND_ULYSSES}) {
      cases.push_back({precision, 1, 3, 1, false, 2, kind});
      cases.push_back({precision, 1, 2, 1, false, 4, kind});
      cases.push_back({precision, 1, 3, 2, true, 2, kind});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Layouts, TensorMemoryTest,
                         ::testing::ValuesIn(TensorCases()), NameOf);

std::vector<MemoryCase> Cases() {
  std::vector<MemoryCase> cases;
  for (const v1::Precision precision :
       {v1::PRECISION_FP32, v1::PRECISION_BF16}) {
    cases.push_back({precision, 1, 3});
    for (const int64_t fsdp : {2, 4, 8}) {
      for (const int64_t stage : {1, 2, 3}) {
        cases.push_back({precision, fsdp, stage});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Layouts, LayoutMemoryTest,
                         ::testing::ValuesIn(Cases()), NameOf);

}  // namespace
}  // namespace testing
}  // namespace lockstep
