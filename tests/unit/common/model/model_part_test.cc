// What the ranks of a layout hold of a model adds up to the model, each element
// counted once.
#include "common/model/model_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "common/model/pipeline_stages.h"

namespace lockstep {
namespace {

ModelSpec Spec(v1::ModelFamily family, bool tied) {
  ModelSpec spec;
  spec.family = family;
  spec.layers = 3;
  spec.width = 12;
  spec.heads = 6;
  spec.kv_heads = family == v1::MODEL_FAMILY_LLAMA ? 3 : 6;
  spec.head_width = 2;
  spec.feed_forward_width = 17;
  spec.vocabulary = 23;
  spec.maximum_positions = 9;
  spec.tied_embeddings = tied;
  spec.attention_bias = family == v1::MODEL_FAMILY_GPT2;
  return spec;
}

TEST(ModelPartTest, CountedPartsCoverEachElementOnce) {
  for (const auto family : {v1::MODEL_FAMILY_GPT2, v1::MODEL_FAMILY_LLAMA}) {
    for (const bool tied : {true, false}) {
      const ModelSpec spec = Spec(family, tied);
      for (const int tp : {1, 2, 3}) {
        for (const int pp : {1, 2, 3, 5}) {
          std::map<int, std::vector<int>> covered;
          for (const LogicalTensor& tensor : DescribeModel(spec)) {
            covered[tensor.index].resize(tensor.elements());
          }
          const std::vector<Portion> stages = PlanStages(spec, 8, pp);
          for (int stage = 0; stage < pp; ++stage) {
            for (int rank = 0; rank < tp; ++rank) {
              for (const LogicalTensor& tensor : DescribePart(
                       PartOf(spec, {rank, tp, true}, {stages[stage]}))) {
                if (!tensor.counted) continue;
                ForEachRun(tensor, 0, tensor.held_elements(),
                           [&](int64_t whole, int64_t held, int64_t count) {
                             for (int64_t i = 0; i < count; ++i) {
                               ++covered[tensor.index][whole + i];
                             }
                           });
              }
            }
          }
          for (const auto& [index, counts] : covered) {
            EXPECT_THAT(counts, ::testing::Each(1))
                << "tensor " << index << " of tp " << tp << " x pp " << pp;
          }
        }
      }
    }
  }
}

TEST(ModelPartTest, RunsOfAColumnPartAreRowByRow) {
  LogicalTensor tensor;
  tensor.shape = {3, 10};
  tensor.held_shape = {3, 4};
  tensor.split_dim = 1;
  tensor.split_begin = 5;
  std::vector<std::vector<int64_t>> runs;
  ForEachRun(tensor, 2, 7, [&](int64_t whole, int64_t held, int64_t count) {
    runs.push_back({whole, held, count});
  });
  EXPECT_THAT(runs, ::testing::ElementsAre(::testing::ElementsAre(7, 2, 2),
                                           ::testing::ElementsAre(15, 4, 4),
                                           ::testing::ElementsAre(25, 8, 1)));
}

TEST(PipelineStagesTest, StagesCoverTheUnitsAndBalanceCosts) {
  ModelSpec spec = Spec(v1::MODEL_FAMILY_LLAMA, true);
  for (const int64_t layers : {1, 2, 5, 12}) {
    spec.layers = layers;
    for (int64_t stages = 1; stages <= layers + 2; ++stages) {
      const std::vector<Portion> plan = PlanStages(spec, 8, stages);
      ASSERT_EQ(static_cast<int64_t>(plan.size()), stages);
      int64_t next = 0;
      for (const Portion& stage : plan) {
        EXPECT_EQ(stage.begin, next);
        EXPECT_GT(stage.size(), 0);
        next = stage.end;
      }
      EXPECT_EQ(next, layers + 2);
    }
  }
  // A head as costly as many layers has a stage to itself.
  spec.layers = 4;
  spec.vocabulary = 100'000;
  EXPECT_EQ(PlanStages(spec, 8, 2)[1].begin, 5);
}

}  // namespace
}  // namespace lockstep
