#include "coordinator/schedule/job_queue.h"

#include "tests/testing/status_matchers.h"
#include "tests/unit/coordinator/test_jobs.h"

namespace lockstep {
namespace {

using ::lockstep::testing::kMiB;
using ::lockstep::testing::TestJob;
using ::lockstep::testing::TestWorker;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<QueuedJob> Queue(const std::vector<JobRecord>& jobs) {
  std::vector<QueuedJob> queue;
  for (const JobRecord& job : jobs) queue.push_back({&job, "", true});
  return queue;
}

ClusterView OneWorker(int devices, const std::string& held_by = "",
                      int held = 0) {
  ClusterView cluster{{TestWorker("w0", devices)}};
  for (int i = 0; i < held; ++i) {
    cluster.workers[0].devices[static_cast<size_t>(i)].job = held_by;
  }
  return cluster;
}

TEST(JobQueueTest, JobsStartInOrderOnDistinctDevices) {
  const std::vector<JobRecord> jobs = {TestJob("a"), TestJob("b")};
  const QueueDecision decision = DecideQueue(Queue(jobs), OneWorker(2));
  ASSERT_THAT(decision.starts, SizeIs(2));
  EXPECT_EQ(decision.starts[0].job, "a");
  EXPECT_EQ(decision.starts[1].job, "b");
  EXPECT_NE(decision.starts[0].placement[0].device,
            decision.starts[1].placement[0].device);
  EXPECT_THAT(decision.reasons, SizeIs(0));
}

TEST(JobQueueTest, NoWorkersIsSaid) {
  const std::vector<JobRecord> jobs = {TestJob("a", 2)};
  const QueueDecision decision = DecideQueue(Queue(jobs), {});
  EXPECT_EQ(decision.reasons.at("a"), "needs 2 devices, there are no workers");
}

TEST(JobQueueTest, TakenDevicesAreCountedAndTheirJobNamed) {
  const std::vector<JobRecord> jobs = {TestJob("a", 2)};
  const QueueDecision decision =
      DecideQueue(Queue(jobs), OneWorker(2, "old-job", 1));
  EXPECT_EQ(decision.reasons.at("a"),
            "needs 2 devices, 1 is free of 2; waiting for job old-job");
}

TEST(JobQueueTest, TooSmallClusterIsSaid) {
  const std::vector<JobRecord> jobs = {TestJob("a", 4)};
  const QueueDecision decision = DecideQueue(Queue(jobs), OneWorker(2));
  EXPECT_EQ(decision.reasons.at("a"), "needs 4 devices, the cluster has 2");
}

TEST(JobQueueTest, SmallJobDoesNotOvertakeOneThatWaitsForDevices) {
  const std::vector<JobRecord> jobs = {TestJob("big", 2), TestJob("small", 1)};
  const QueueDecision decision =
      DecideQueue(Queue(jobs), OneWorker(2, "old-job", 1));
  EXPECT_THAT(decision.starts, SizeIs(0));
  EXPECT_THAT(decision.reasons.at("small"), HasSubstr("behind job big"));
}

TEST(JobQueueTest, JobThatFitsNoPresentWorkerHoldsUpNobody) {
  const std::vector<JobRecord> jobs = {TestJob("huge", 4), TestJob("small", 1)};
  const QueueDecision decision = DecideQueue(Queue(jobs), OneWorker(2));
  ASSERT_THAT(decision.starts, SizeIs(1));
  EXPECT_EQ(decision.starts[0].job, "small");
}

TEST(JobQueueTest, SecondJobWaitsForTheFirstThatStartsNow) {
  const std::vector<JobRecord> jobs = {TestJob("a", 2), TestJob("b", 1)};
  const QueueDecision decision = DecideQueue(Queue(jobs), OneWorker(2));
  ASSERT_THAT(decision.starts, SizeIs(1));
  EXPECT_EQ(decision.reasons.at("b"),
            "needs 1 device, 0 are free of 2; waiting for job a");
}

TEST(JobQueueTest, HeldBackJobKeepsItsReasonAndItsPlace) {
  const std::vector<JobRecord> jobs = {TestJob("a"), TestJob("b")};
  std::vector<QueuedJob> queue = Queue(jobs);
  queue[0].held_back = "worker w0 refused: busy; tried again soon";
  const QueueDecision decision = DecideQueue(queue, OneWorker(2));
  EXPECT_THAT(decision.starts, SizeIs(0));
  EXPECT_EQ(decision.reasons.at("a"), queue[0].held_back);
  EXPECT_THAT(decision.reasons.at("b"), HasSubstr("behind job a"));
}

TEST(JobQueueTest, JobThatIsRefusedAgainAndAgainHoldsUpNobody) {
  const std::vector<JobRecord> jobs = {TestJob("a"), TestJob("b")};
  std::vector<QueuedJob> queue = Queue(jobs);
  queue[0].held_back = "worker w0 refused: busy; tried again soon";
  queue[0].keeps_place = false;
  const QueueDecision decision = DecideQueue(queue, OneWorker(2));
  ASSERT_THAT(decision.starts, SizeIs(1));
  EXPECT_EQ(decision.starts[0].job, "b");
}

TEST(JobQueueTest, MemoryRequestLeavesSmallDevicesOut) {
  JobRecord job = TestJob("a", 1);
  job.spec.mutable_resources()->mutable_memory_per_device()->set_bytes(2000 *
                                                                       kMiB);
  ClusterView cluster{
      {TestWorker("w0", 1, 1000 * kMiB), TestWorker("w1", 1, 4000 * kMiB)}};
  ASSERT_OK_AND_ASSIGN(const StartDecision start, PlaceJob(job, cluster));
  EXPECT_EQ(start.placement[0].worker, "w1");
  cluster.workers.pop_back();
  EXPECT_THAT(PlaceJob(job, cluster),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr("1.95 GiB each"),
                                      HasSubstr("has 0 of that size"))));
}

TEST(JobQueueTest, DevicesTooSmallForTheModelAreSaidWithNumbers) {
  const JobRecord job = TestJob("a", 1);
  const ClusterView cluster{{TestWorker("w0", 1, 1000)}};
  EXPECT_THAT(PlaceJob(job, cluster),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr("its limit is 1000 B"),
                                      HasSubstr("would do"))));
}

TEST(JobQueueTest, LargerDeviceIsTakenWhereTheSmallerDoesNotFit) {
  const JobRecord job = TestJob("a", 1);
  const ClusterView cluster{
      {TestWorker("w0", 1, 1000), TestWorker("w1", 1, 1000 * kMiB)}};
  ASSERT_OK_AND_ASSIGN(const StartDecision start, PlaceJob(job, cluster));
  EXPECT_EQ(start.placement[0].worker, "w1");
}

}  // namespace
}  // namespace lockstep
