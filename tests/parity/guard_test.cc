// The guard finds nothing where all is well, whatever the layout, and names a
// single bit that one rank holds otherwise.
#include "worker/train/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/parity/layout_cases.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

LayoutRun Guarded(int64_t dp, int64_t fsdp, int64_t tp, int64_t pp) {
  LayoutRun run = MakeRun(v1::MODEL_FAMILY_GPT2, dp, fsdp, 3, 2);
  run.layout.set_tp(tp);
  run.layout.set_sequence_parallel(tp > 1);
  run.layout.set_pp(pp);
  run.steps = 2;
  run.guard = true;
  return run;
}

TEST(GuardTest, EqualRanksPass) {
  EXPECT_OK(RunLayout(Guarded(2, 2, 1, 1)).status());
  EXPECT_OK(RunLayout(Guarded(1, 1, 2, 2)).status());
  EXPECT_OK(RunLayout(Guarded(2, 1, 2, 1)).status());
}

TEST(GuardTest, OneBitOfAReplicaIsNamed) {
  LayoutRun run = Guarded(2, 1, 1, 1);
  run.flipping_rank = 1;
  run.flipped = "blocks.1.feed_forward.up.weight";
  EXPECT_THAT(RunLayout(run),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("of group dp holds another parameter of "
                                       "blocks.1.feed_forward.up.weight"),
                             HasSubstr("guard after step 2"))));
}

TEST(GuardTest, OneBitOfANormThatIsNotSplitIsNamed) {
  LayoutRun run = Guarded(1, 1, 2, 1);
  run.flipping_rank = 0;
  run.flipped = "final_norm.weight";
  EXPECT_THAT(RunLayout(run),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("of group tp holds another parameter of "
                                 "final_norm.weight")));
}

TEST(GuardTest, OneBitOfAnEmbeddingOnTwoStagesIsNamed) {
  LayoutRun run = Guarded(1, 1, 1, 2);
  run.flipping_rank = 1;
  run.flipped = "embedding.tokens.weight";
  EXPECT_THAT(RunLayout(run),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("of group pp holds another parameter of "
                                 "embedding.tokens.weight")));
}

}  // namespace
}  // namespace testing
}  // namespace lockstep
