// The worker with real rank processes (fake_rank) and a fake coordinator.
#include "worker/worker.h"

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/process_list.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/agent/fake_coordinator.h"
#include "worker/agent/proc_files.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using testing::FakeClock;
using testing::FakeCoordinator;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::WaitForProcessEnd;

constexpr absl::Duration kPatience = absl::Seconds(30);

class WorkerTest : public ::testing::Test {
 protected:
  void StartWorker(Clock& clock = RealClock()) {
    Worker::Options options;
    options.coordinators = {coordinator_.address()};
    options.name = "host-a";
    options.incarnation = "first";
    for (int i = 0; i < 2; ++i) {
      v1::DeviceInfo& device = options.inventory.devices.emplace_back();
      device.set_id(absl::StrCat("cpu:", i));
      device.set_kind("cpu");
    }
    options.inventory.cores = 2;
    options.job_root = folder_.File("jobs");
    options.data_root = folder_.path();
    options.address = "127.0.0.1";
    options.data_address = "127.0.0.1";
    options.metrics = Address{"127.0.0.1", 0};
    options.rank_program = LOCKSTEP_FAKE_RANK;
    options.clock = &clock;
    ASSERT_OK_AND_ASSIGN(worker_, Worker::Start(options));
  }

  std::string RankLog(int64_t rank) {
    return folder_.Read(
        absl::StrCat("jobs/test-1a2b/logs/g1/rank-", rank, ".log"));
  }

  // Scrapes until the text has `line`.
  bool AwaitMetric(const std::string& line) {
    httplib::Client client("127.0.0.1", worker_->metrics_address()->port);
    const absl::Duration deadline = RealClock().Uptime() + kPatience;
    while (RealClock().Uptime() < deadline) {
      const auto answer = client.Get("/metrics");
      if (answer && answer->body.find(line) != std::string::npos) return true;
    }
    return false;
  }

  static bool AwaitState(pid_t pid, char state) {
    const absl::Duration deadline = RealClock().Uptime() + kPatience;
    while (RealClock().Uptime() < deadline) {
      if (ProcessState(pid) == state) return true;
    }
    return false;
  }

  TempDir folder_;
  FakeClock clock_;
  FakeCoordinator coordinator_;
  std::unique_ptr<Worker> worker_;
};

TEST_F(WorkerTest, HelloNamesWorkerAndDevices) {
  StartWorker();
  const auto hello = coordinator_.Await(
      [](const v1::WorkerMessage& message) { return message.has_hello(); });
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(hello->hello().name(), "host-a");
  EXPECT_EQ(hello->hello().devices_size(), 2);
  EXPECT_EQ(hello->sequence(), 0);
}

TEST_F(WorkerTest, FinishedRankIsReportedAfterItsSteps) {
  StartWorker();
  ASSERT_TRUE(coordinator_.StartGang("finish", 1));
  const auto exited = coordinator_.AwaitExit(0);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause(), v1::CAUSE_UNSPECIFIED) << exited->message();
  EXPECT_EQ(exited->exit_code(), 0);
  std::vector<int64_t> steps;
  int64_t last_sequence = 0;
  for (const v1::WorkerMessage& message : coordinator_.Received()) {
    if (message.sequence() > 0) {
      EXPECT_EQ(message.sequence(), last_sequence + 1);
      last_sequence = message.sequence();
    }
    if (message.has_rank_report()) {
      EXPECT_EQ(message.rank_report().gang().job(), "test-1a2b");
      steps.push_back(message.rank_report().step().step());
    }
  }
  EXPECT_THAT(steps, ElementsAre(1, 2, 3));
  EXPECT_THAT(RankLog(0), HasSubstr("finished: OK"));
}

TEST_F(WorkerTest, ExitCodeIsReportedWithTheLogsLastLine) {
  StartWorker();
  ASSERT_TRUE(coordinator_.StartGang("exit", 1));
  const auto exited = coordinator_.AwaitExit(0);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause(), v1::CAUSE_EXIT);
  EXPECT_EQ(exited->exit_code(), 7);
  EXPECT_THAT(exited->message(), HasSubstr("this is the end"));
}

TEST_F(WorkerTest, CrashIsReportedAndTheWorkerLivesOn) {
  StartWorker();
  ASSERT_TRUE(coordinator_.StartGang("crash", 1));
  const auto exited = coordinator_.AwaitExit(0);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause(), v1::CAUSE_SIGNAL);
  EXPECT_EQ(exited->signal(), SIGSEGV);
  EXPECT_EQ(coordinator_.sessions(), 1);
}

TEST_F(WorkerTest, FailureOfOneRankEndsTheOtherAsSecondary) {
  StartWorker();
  ASSERT_TRUE(coordinator_.StartGang("rank0_fails", 2));
  const auto first = coordinator_.AwaitExit(0);
  const auto second = coordinator_.AwaitExit(1);
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->cause(), v1::CAUSE_NAN_LOSS);
  EXPECT_EQ(first->message(), "loss is NaN at step 2");
  EXPECT_FALSE(first->secondary());
  EXPECT_TRUE(second->secondary());
  EXPECT_THAT(second->message(), HasSubstr("rank 0 failed"));
}

TEST_F(WorkerTest, KilledRankIsPrimaryAndItsPeerSecondary) {
  StartWorker();
  ASSERT_TRUE(coordinator_.StartGang("wait", 2));
  kill(static_cast<pid_t>(coordinator_.AwaitStart(1)->pid()), SIGKILL);
  const auto killed = coordinator_.AwaitExit(1);
  const auto peer = coordinator_.AwaitExit(0);
  ASSERT_TRUE(killed.has_value() && peer.has_value());
  EXPECT_EQ(killed->cause(), v1::CAUSE_SIGNAL);
  EXPECT_EQ(killed->signal(), SIGKILL);
  EXPECT_FALSE(killed->secondary());
  EXPECT_TRUE(peer->secondary());
}

TEST_F(WorkerTest, StoppedGangIsGoneWithItsReason) {
  StartWorker();
  ASSERT_TRUE(coordinator_.StartGang("wait", 2));
  v1::CoordinatorMessage stop;
  *stop.mutable_stop_gang()->mutable_gang() = FakeCoordinator::Gang();
  stop.mutable_stop_gang()->set_reason("cancelled by user");
  stop.mutable_stop_gang()->mutable_grace()->set_seconds(5);
  coordinator_.Send(stop);
  const auto exited = coordinator_.AwaitExit(0);
  ASSERT_TRUE(exited.has_value());
  EXPECT_TRUE(exited->secondary());
  EXPECT_EQ(exited->message(), "stopped: cancelled by user");
}

TEST_F(WorkerTest, StoppedProcessIsKilledAndNamedAsHung) {
  StartWorker(clock_);
  ASSERT_TRUE(coordinator_.StartGang("wait", 2));
  const pid_t pid = static_cast<pid_t>(coordinator_.AwaitStart(1)->pid());
  ASSERT_TRUE(
      AwaitMetric("lockstep_worker_rank_step{job=\"test-1a2b\",rank=\"1\"} "
                  "1"));
  kill(pid, SIGSTOP);
  ASSERT_TRUE(AwaitState(pid, 'T'));
  clock_.Advance(absl::Seconds(6));
  const auto exited = coordinator_.AwaitExit(1);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause(), v1::CAUSE_HANG);
  EXPECT_THAT(exited->message(), AllOf(HasSubstr("in step 1, training"),
                                       HasSubstr("stopped (SIGSTOP)")));
  const auto peer = coordinator_.AwaitExit(0);
  ASSERT_TRUE(peer.has_value());
  EXPECT_TRUE(peer->secondary());
}

TEST_F(WorkerTest, ChildOfARankDoesNotOutliveIt) {
  StartWorker();
  ASSERT_TRUE(coordinator_.StartGang("child", 1));
  const auto exited = coordinator_.AwaitExit(0);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause(), v1::CAUSE_UNSPECIFIED) << exited->message();
  const std::string log = RankLog(0);
  const size_t at = log.find("child ");
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_OK(WaitForProcessEnd(std::stoi(log.substr(at + 6)), kPatience));
}

TEST_F(WorkerTest, RanksMeetThroughTheCoordinatorsStore) {
  StartWorker();
  ASSERT_TRUE(coordinator_.StartGang("store", 2));
  EXPECT_EQ(coordinator_.AwaitExit(1)->cause(), v1::CAUSE_UNSPECIFIED);
  EXPECT_THAT(RankLog(1),
              ContainsRegex("missing: DEADLINE_EXCEEDED: .*nothing"));
}

TEST_F(WorkerTest, StoreIsAskedAgainWhenTheCoordinatorIsBack) {
  StartWorker();
  ASSERT_TRUE(coordinator_.StartGang("await_key", 1));
  ASSERT_TRUE(coordinator_.AwaitGets(1));
  coordinator_.Stop();
  coordinator_.Serve();
  ASSERT_TRUE(coordinator_.AwaitGets(2));
  coordinator_.Set("late", "value");
  const auto exited = coordinator_.AwaitExit(0);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause(), v1::CAUSE_UNSPECIFIED) << exited->message();
}

TEST_F(WorkerTest, RanksDoNotNoticeARestartOfTheCoordinator) {
  StartWorker();
  coordinator_.set_acknowledge(false);
  ASSERT_TRUE(coordinator_.StartGang("wait", 2));
  const size_t before = coordinator_.Received().size();
  coordinator_.Stop();
  coordinator_.Serve();
  ASSERT_TRUE(coordinator_.AwaitSessions(2));
  // GangPrepared and two RankStarted, none of which was acknowledged, come
  // again, once and in order.
  ASSERT_TRUE(coordinator_
                  .Await([seen = 0](const v1::WorkerMessage& message) mutable {
                    if (message.sequence() == 3) ++seen;
                    return seen == 2;
                  })
                  .has_value());
  std::vector<int64_t> sequences;
  const std::vector<v1::WorkerMessage> received = coordinator_.Received();
  for (size_t i = before; i < received.size(); ++i) {
    if (received[i].sequence() > 0) sequences.push_back(received[i].sequence());
    if (!received[i].has_hello()) continue;
    EXPECT_EQ(received[i].hello().incarnation(), "first");
    ASSERT_EQ(received[i].hello().running_size(), 2);
    EXPECT_EQ(received[i].hello().running(1).rank(), 1);
  }
  EXPECT_THAT(sequences, ElementsAre(1, 2, 3));
}

TEST_F(WorkerTest, StaleRanksAreKilledAfterAReconnect) {
  StartWorker();
  ASSERT_TRUE(coordinator_.StartGang("wait", 1));
  coordinator_.Stop();
  coordinator_.set_stale(FakeCoordinator::Gang());
  coordinator_.Serve();
  const auto exited = coordinator_.AwaitExit(0);
  ASSERT_TRUE(exited.has_value());
  EXPECT_TRUE(exited->secondary());
  EXPECT_EQ(exited->signal(), SIGKILL);
}

TEST_F(WorkerTest, ShutDownLosesTheWorkerAndTheCoordinatorKnows) {
  StartWorker();
  ASSERT_TRUE(coordinator_.StartGang("wait", 2));
  EXPECT_OK(worker_->ShutDown("SIGTERM"));
  const auto exited = coordinator_.AwaitExit(1);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause(), v1::CAUSE_LOST_WORKER);
  EXPECT_EQ(exited->message(), "worker host-a shut down: SIGTERM");
}

TEST_F(WorkerTest, DroppedWorkerLeavesNoRankBehind) {
  StartWorker();
  ASSERT_TRUE(coordinator_.StartGang("wait", 2));
  const pid_t pid = static_cast<pid_t>(coordinator_.AwaitStart(1)->pid());
  worker_.reset();
  EXPECT_OK(WaitForProcessEnd(pid, kPatience));
}

TEST_F(WorkerTest, MetricsAndReadinessAreServed) {
  StartWorker();
  ASSERT_TRUE(coordinator_.StartGang("finish", 1));
  ASSERT_TRUE(coordinator_.AwaitExit(0).has_value());
  httplib::Client client("127.0.0.1", worker_->metrics_address()->port);
  EXPECT_EQ(client.Get("/readyz")->status, 200);
  EXPECT_THAT(
      client.Get("/metrics")->body,
      AllOf(HasSubstr("lockstep_worker_connected 1"),
            HasSubstr("lockstep_worker_ranks_started_total 1"),
            HasSubstr("lockstep_worker_ranks_exited_total{cause=\"none\"} 1"),
            HasSubstr("lockstep_worker_devices{state=\"free\"} 2")));
}

}  // namespace
}  // namespace lockstep
