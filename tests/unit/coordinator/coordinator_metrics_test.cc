#include "coordinator/coordinator_metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(EndedJobsTest, SeriesGoAWhileAfterTheEndWithoutAnyScrape) {
  MetricsRegistry registry;
  EndedJobs ended;
  for (const char* job : {"old-1", "new-1"}) {
    registry.Increment(metric_names::kJobTokens, {{"job", job}}, 5);
  }
  ended.Note("old-1", absl::Hours(1));
  ended.Note("new-1", absl::Hours(1) + absl::Minutes(5));
  ended.Purge(absl::Hours(1) + absl::Minutes(9), registry);
  EXPECT_THAT(registry.Text(), HasSubstr("old-1"));
  ended.Purge(absl::Hours(1) + absl::Minutes(10), registry);
  EXPECT_THAT(registry.Text(), Not(HasSubstr("old-1")));
  EXPECT_THAT(registry.Text(), HasSubstr("new-1"));
}

}  // namespace
}  // namespace lockstep
