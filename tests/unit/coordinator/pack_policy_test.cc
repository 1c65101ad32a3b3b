#include "coordinator/schedule/pack_policy.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/coordinator/test_jobs.h"

namespace lockstep {
namespace {

using ::lockstep::testing::TestWorker;
using ::testing::ElementsAre;

std::vector<std::string> Workers(const std::optional<Placement>& placement) {
  std::vector<std::string> names;
  if (!placement.has_value()) return {"nowhere"};
  for (const PlacedRank& rank : *placement) names.push_back(rank.worker);
  return names;
}

TEST(PackPolicyTest, TightestWorkerIsTaken) {
  const ClusterView cluster{
      {TestWorker("a", 4), TestWorker("b", 2), TestWorker("c", 3)}};
  EXPECT_THAT(Workers(PackPolicy(cluster, 2, 0)), ElementsAre("b", "b"));
}

TEST(PackPolicyTest, FewestWorkersShareAGangThatFitsNone) {
  const ClusterView cluster{
      {TestWorker("a", 1), TestWorker("b", 3), TestWorker("c", 2)}};
  EXPECT_THAT(Workers(PackPolicy(cluster, 5, 0)),
              ElementsAre("b", "b", "b", "c", "c"));
}

TEST(PackPolicyTest, TooFewFreeDevicesPlaceNothing) {
  ClusterView cluster{{TestWorker("a", 2)}};
  cluster.workers[0].devices[0].job = "other";
  EXPECT_FALSE(PackPolicy(cluster, 2, 0).has_value());
  EXPECT_THAT(Workers(PackPolicy(cluster, 1, 0)), ElementsAre("a"));
}

TEST(PackPolicyTest, SmallDevicesAreLeftOutAndUnknownOnesAreNot) {
  const ClusterView cluster{{TestWorker("a", 1, 100), TestWorker("b", 1, 0),
                             TestWorker("c", 1, 300)}};
  EXPECT_THAT(Workers(PackPolicy(cluster, 2, 200)), ElementsAre("b", "c"));
}

TEST(PackPolicyTest, RanksOfOneHostAreNeighbours) {
  ClusterView cluster{
      {TestWorker("a", 1), TestWorker("b", 1), TestWorker("c", 1)}};
  cluster.workers[0].host = "h2";
  cluster.workers[1].host = "h1";
  cluster.workers[2].host = "h2";
  EXPECT_THAT(Workers(PackPolicy(cluster, 3, 0)), ElementsAre("b", "a", "c"));
}

}  // namespace
}  // namespace lockstep
