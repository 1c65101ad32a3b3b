#include "coordinator/launch/gang_launcher.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/coordinator/test_jobs.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

LaunchOrder Order() {
  LaunchOrder order;
  order.gang.set_job("tiny-abcd");
  order.gang.set_generation(3);
  order.spec = testing::FilledSpec();
  v1::Layout& layout = *order.layout.mutable_layout();
  layout.set_dp(3);
  layout.set_fsdp(1);
  layout.set_cp(1);
  layout.set_tp(1);
  layout.set_pp(1);
  order.layout.mutable_predicted_memory()->set_peak_bytes(555);
  order.placement = {{"a", "a-1", "h1", "cpu:0", 1000, v1::CPU_LEVEL_X86_64_V4},
                     {"a", "a-1", "h1", "cpu:1", 1000, v1::CPU_LEVEL_X86_64_V4},
                     {"b", "b-1", "h2", "cpu:0", 800, v1::CPU_LEVEL_X86_64_V3}};
  order.secret = "s";
  return order;
}

TEST(GangLauncherTest, EachRankKnowsItsPlace) {
  const auto ranks = MakeAssignments(Order());
  ASSERT_THAT(ranks, SizeIs(3));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ranks[i].rank(), i);
    EXPECT_EQ(ranks[i].world_size(), 3);
    EXPECT_EQ(ranks[i].gang().generation(), 3);
    EXPECT_EQ(ranks[i].data_share_index(), i);
    EXPECT_EQ(ranks[i].data_share_count(), 3);
    EXPECT_EQ(ranks[i].rendezvous_secret(), "s");
    EXPECT_EQ(ranks[i].predicted_peak_bytes(), 555u);
    // The whole gang runs at its lowest level.
    EXPECT_EQ(ranks[i].cpu_level(), v1::CPU_LEVEL_X86_64_V3);
  }
  EXPECT_EQ(ranks[1].device(), "cpu:1");
  EXPECT_EQ(ranks[2].worker(), "b");
  EXPECT_THAT(ranks[0].host_ranks(), ElementsAre(0, 1));
  EXPECT_THAT(ranks[2].host_ranks(), ElementsAre(2));
}

TEST(GangLauncherTest, LimitIsTheSmallerOfRequestAndDevice) {
  LaunchOrder order = Order();
  EXPECT_EQ(MakeAssignments(order)[2].memory_limit_bytes(), 800u);
  order.spec.mutable_resources()->mutable_memory_per_device()->set_bytes(900);
  EXPECT_EQ(MakeAssignments(order)[0].memory_limit_bytes(), 900u);
  EXPECT_EQ(MakeAssignments(order)[2].memory_limit_bytes(), 800u);
  order.placement[0].memory_bytes = 0;
  EXPECT_EQ(MakeAssignments(order)[0].memory_limit_bytes(), 900u);
}

TEST(GangLauncherTest, RanksThatSplitAModelShareTheirData) {
  LaunchOrder order = Order();
  order.layout.mutable_layout()->set_dp(2);
  order.layout.mutable_layout()->set_tp(2);
  order.placement.push_back(order.placement.back());
  std::vector<int64_t> shares;
  for (const auto& rank : MakeAssignments(order)) {
    shares.push_back(rank.data_share_index());
    EXPECT_EQ(rank.data_share_count(), 2);
  }
  EXPECT_THAT(shares, ElementsAre(0, 0, 1, 1));
}

TEST(GangLauncherTest, EachWorkerGetsItsOwnRanks) {
  const auto prepares = MakePrepareGangs(Order());
  ASSERT_THAT(prepares, SizeIs(2));
  EXPECT_EQ(prepares.at("a").ranks_size(), 2);
  EXPECT_EQ(prepares.at("b").ranks_size(), 1);
  EXPECT_EQ(prepares.at("b").ranks(0).rank(), 2);
}

}  // namespace
}  // namespace lockstep
