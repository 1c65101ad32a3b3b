// Checkpoints of any layout load in any other: weights, moments, step and data
// position come out bit by bit, and training goes on as it would have.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/parity/layout_run.h"
#include "tests/testing/full_test.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "worker/checkpoint/checkpoint.h"

namespace lockstep {
namespace testing {
namespace {

constexpr int kStepsBefore = 3;
constexpr int kStepsAfter = 20;

v1::Layout MakeLayout(int64_t dp, int64_t fsdp, int64_t zero_stage,
                      int64_t tp = 1) {
  v1::Layout layout = OneRank(2);
  layout.set_dp(dp);
  layout.set_fsdp(fsdp);
  layout.set_zero_stage(zero_stage);
  layout.set_tp(tp);
  layout.set_sequence_parallel(tp > 1);
  return layout;
}

std::vector<v1::Layout> Layouts() {
  v1::Layout pipeline = MakeLayout(1, 1, 3, 2);
  pipeline.set_pp(2);
  pipeline.set_schedule(v1::PIPELINE_SCHEDULE_ZERO_BUBBLE);
  v1::Layout ring = MakeLayout(1, 2, 2);
  ring.set_cp(2);
  return {MakeLayout(1, 1, 3),
          MakeLayout(3, 1, 3),
          MakeLayout(2, 2, 1),
          MakeLayout(1, 2, 3, 2),
          pipeline,
          ring};
}

LayoutRun RunOf(const v1::Layout& layout) {
  LayoutRun run;
  run.model = SmallModel(v1::MODEL_FAMILY_GPT2, v1::TASK_LANGUAGE_MODEL);
  run.training.seed = 7;
  run.training.optimizer.learning_rate = 1e-3;
  run.layout = layout;
  run.steps = kStepsBefore;
  return run;
}

// All in the long form; some that hold all kinds of parts in the short one.
std::vector<v1::Layout> StartingLayouts() {
  const std::vector<v1::Layout> all = Layouts();
  if (IsFullTest()) return all;
  return {all[0], all[3], all[4], all[5]};
}

// From the layout of each case to all layouts.
class ReshardTest : public ::testing::TestWithParam<v1::Layout> {};

TEST_P(ReshardTest, LoadsInEveryLayout) {
  const TempDir folder;
  LayoutRun first = RunOf(GetParam());
  first.save_to = folder.path();
  ASSERT_OK_AND_ASSIGN(const LayoutResult saved, RunLayout(first));
  LayoutRun uncut = RunOf(GetParam());
  uncut.steps = kStepsBefore + kStepsAfter;
  ASSERT_OK_AND_ASSIGN(const LayoutResult want, RunLayout(uncut));

  std::vector<float> start;
  for (const v1::Layout& layout : Layouts()) {
    SCOPED_TRACE(absl::StrCat("to ", NameOf(layout)));
    LayoutRun second = RunOf(layout);
    second.load_from = CheckpointPath(folder.path(), kStepsBefore, 1);
    second.steps = kStepsAfter;
    ASSERT_OK_AND_ASSIGN(const LayoutResult got, RunLayout(second));
    EXPECT_EQ(got.start_step, kStepsBefore);
    EXPECT_EQ(got.start_position, kStepsBefore * first.global_batch);
    // Masters come first.
    EXPECT_TRUE(std::equal(saved.masters.begin(), saved.masters.end(),
                           got.start.begin()));
    if (start.empty()) start = got.start;
    EXPECT_EQ(got.start, start);
    const bool same = NameOf(layout) == NameOf(GetParam());
    for (int i = 0; i < kStepsAfter; ++i) {
      const double loss = want.losses[kStepsBefore + i];
      EXPECT_NEAR(got.losses[i], loss, same ? 0.0 : 1e-5 * loss)
          << "step " << kStepsBefore + i + 1;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, ReshardTest, ::testing::ValuesIn(StartingLayouts()),
    [](const ::testing::TestParamInfo<v1::Layout>& layout) {
      return NameOf(layout.param);
    });

}  // namespace
}  // namespace testing
}  // namespace lockstep
