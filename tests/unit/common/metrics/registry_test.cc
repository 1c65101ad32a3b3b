#include "common/metrics/registry.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsRegistryTest, SeriesOfOneNameAreKeptApartByLabels) {
  MetricsRegistry metrics;
  metrics.Increment(metric_names::kWorkerRanksExited, {{"cause", "hang"}});
  metrics.Increment(metric_names::kWorkerRanksExited, {{"cause", "hang"}}, 2);
  metrics.Increment(metric_names::kWorkerRanksExited, {{"cause", "exit"}}, 0);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("# TYPE lockstep_worker_ranks_exited_total "
                              "counter\n"));
  EXPECT_THAT(
      text, HasSubstr("lockstep_worker_ranks_exited_total{cause=\"hang\"} 3"));
  EXPECT_THAT(
      text, HasSubstr("lockstep_worker_ranks_exited_total{cause=\"exit\"} 0"));
}

TEST(MetricsRegistryTest, RemovedSeriesDisappearAndMayComeBack) {
  MetricsRegistry metrics;
  metrics.Set(metric_names::kJobStep, {{"job", "a"}}, 5);
  metrics.Set(metric_names::kJobStep, {{"job", "b"}}, 6);
  metrics.Observe(metric_names::kJobStepSeconds, {{"job", "a"}}, 0.2);
  metrics.RemoveSeries("job", "a");
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("job=\"a\"")));
  EXPECT_THAT(metrics.Text(), HasSubstr("lockstep_job_step{job=\"b\"} 6"));
  metrics.Set(metric_names::kJobStep, {{"job", "a"}}, 1);
  EXPECT_THAT(metrics.Text(), HasSubstr("lockstep_job_step{job=\"a\"} 1"));
}

TEST(MetricsRegistryTest, HistogramCountsIntoItsBuckets) {
  MetricsRegistry metrics;
  metrics.Observe(metric_names::kJobStepSeconds, {}, 0.2);
  metrics.Observe(metric_names::kJobStepSeconds, {}, 1000);
  const std::string text = metrics.Text();
  EXPECT_THAT(text,
              HasSubstr("lockstep_job_step_seconds_bucket{le=\"0.1\"} 0"));
  EXPECT_THAT(text,
              HasSubstr("lockstep_job_step_seconds_bucket{le=\"0.25\"} 1"));
  EXPECT_THAT(text,
              HasSubstr("lockstep_job_step_seconds_bucket{le=\"+Inf\"} 2"));
}

}  // namespace
}  // namespace lockstep
