#include "coordinator/jobs/job_state.h"

#include <set>
#include <tuple>
#include <utility>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr JobState kStates[] = {
    v1::JOB_STATE_PENDING,    v1::JOB_STATE_STARTING,  v1::JOB_STATE_RUNNING,
    v1::JOB_STATE_RESTARTING, v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED,
    v1::JOB_STATE_CANCELLED};

// Design section 1, "Job states", edge by edge.
const std::set<std::pair<JobState, JobState>>& Edges() {
  static const auto* const edges = new std::set<std::pair<JobState, JobState>>{
      {v1::JOB_STATE_PENDING, v1::JOB_STATE_STARTING},
      {v1::JOB_STATE_PENDING, v1::JOB_STATE_FAILED},
      {v1::JOB_STATE_PENDING, v1::JOB_STATE_CANCELLED},
      {v1::JOB_STATE_STARTING, v1::JOB_STATE_RUNNING},
      {v1::JOB_STATE_STARTING, v1::JOB_STATE_RESTARTING},
      {v1::JOB_STATE_STARTING, v1::JOB_STATE_FAILED},
      {v1::JOB_STATE_STARTING, v1::JOB_STATE_CANCELLED},
      {v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED},
      {v1::JOB_STATE_RUNNING, v1::JOB_STATE_FAILED},
      {v1::JOB_STATE_RUNNING, v1::JOB_STATE_CANCELLED},
      {v1::JOB_STATE_RUNNING, v1::JOB_STATE_RESTARTING},
      {v1::JOB_STATE_RUNNING, v1::JOB_STATE_PENDING},
      {v1::JOB_STATE_RESTARTING, v1::JOB_STATE_STARTING},
      {v1::JOB_STATE_RESTARTING, v1::JOB_STATE_PENDING},
      {v1::JOB_STATE_RESTARTING, v1::JOB_STATE_FAILED},
      {v1::JOB_STATE_RESTARTING, v1::JOB_STATE_CANCELLED}};
  return *edges;
}

class JobStateEdgeTest
    : public ::testing::TestWithParam<std::tuple<JobState, JobState>> {};

TEST_P(JobStateEdgeTest, ExistsOnlyIfTheDesignHasIt) {
  const auto [from, to] = GetParam();
  EXPECT_EQ(CanMove(from, to), Edges().count({from, to}) > 0);
}

INSTANTIATE_TEST_SUITE_P(All, JobStateEdgeTest,
                         ::testing::Combine(::testing::ValuesIn(kStates),
                                            ::testing::ValuesIn(kStates)),
                         [](const auto& info) {
                           return JobStateWord(std::get<0>(info.param)) + "_" +
                                  JobStateWord(std::get<1>(info.param));
                         });

TEST(JobStateTest, TerminalStatesHaveNoEdgeOut) {
  for (const JobState from : kStates) {
    bool leads_out = false;
    for (const JobState to : kStates) leads_out |= CanMove(from, to);
    EXPECT_EQ(leads_out, !IsEnded(from)) << JobStateWord(from);
  }
}

TEST(JobStateTest, WordsAreThoseOfTheDesign) {
  EXPECT_EQ(JobStateWord(v1::JOB_STATE_PENDING), "PENDING");
  EXPECT_EQ(CauseWord(v1::CAUSE_LOST_WORKER), "lost_worker");
  EXPECT_EQ(CauseWord(v1::CAUSE_UNSPECIFIED), "");
  EXPECT_EQ(OutcomeWord(v1::OUTCOME_SUCCEEDED), "succeeded");
}

}  // namespace
}  // namespace lockstep
