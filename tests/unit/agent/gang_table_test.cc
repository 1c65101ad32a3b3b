#include "worker/agent/gang_table.h"

#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/metrics/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FakeClock;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::StatusIs;

// What a test sees of a rank's process, and sets.
struct FakeProcess {
  std::string token;
  v1::RankAssignment assignment;
  std::vector<int> signals;
  char state = 'S';
};

class FakeHandle : public RankHandle {
 public:
  FakeHandle(pid_t pid, std::shared_ptr<FakeProcess> process)
      : pid_(pid), process_(std::move(process)) {}
  pid_t pid() const override { return pid_; }
  void Signal(int signal) override { process_->signals.push_back(signal); }
  char State() const override { return process_->state; }
  uint64_t ResidentBytes() const override { return 4096; }

 private:
  const pid_t pid_;
  const std::shared_ptr<FakeProcess> process_;
};

class FakeWorld : public GangTable::World {
 public:
  absl::StatusOr<std::unique_ptr<RankHandle>> StartRank(
      const v1::RankAssignment& assignment, const std::string& token) override {
    if (!start_error.ok()) return start_error;
    auto process = std::make_shared<FakeProcess>();
    process->token = token;
    process->assignment = assignment;
    processes[assignment.rank()] = process;
    return std::make_unique<FakeHandle>(1000 + assignment.rank(), process);
  }
  void Send(v1::WorkerMessage message) override {
    sent.push_back(std::move(message));
  }
  int64_t OomKills() override { return oom_kills; }

  // By rank; the newest start.
  std::map<int64_t, std::shared_ptr<FakeProcess>> processes;
  std::vector<v1::WorkerMessage> sent;
  absl::Status start_error = absl::OkStatus();
  int64_t oom_kills = 0;
};

v1::GangId Gang(int64_t generation) {
  v1::GangId gang;
  gang.set_job("kjv-1a2b");
  gang.set_generation(generation);
  return gang;
}

class GangTableTest : public ::testing::Test {
 protected:
  GangTableTest() : table_(Options()) {}

  GangTable::Options Options() {
    GangTable::Options options;
    options.worker = "host-a";
    for (int i = 0; i < 2; ++i) {
      v1::DeviceInfo& device = options.devices.emplace_back();
      device.set_id(absl::StrCat("cpu:", i));
    }
    options.cores = 8;
    options.job_root = "/jobs";
    options.data_root = "/data";
    options.data_address = "127.0.0.1";
    options.clock = &clock_;
    options.world = &world_;
    options.metrics = &metrics_;
    return options;
  }

  // The last GangPrepared.
  v1::GangPrepared Prepare(int64_t generation, int ranks,
                           absl::Duration hang_timeout = absl::Seconds(15)) {
    v1::PrepareGang prepare;
    *prepare.mutable_gang() = Gang(generation);
    for (int rank = 0; rank < ranks; ++rank) {
      v1::RankAssignment& assignment = *prepare.add_ranks();
      *assignment.mutable_gang() = Gang(generation);
      assignment.set_rank(rank);
      assignment.set_device(absl::StrCat("cpu:", rank));
      assignment.mutable_spec()
          ->mutable_restart()
          ->mutable_hang_timeout()
          ->set_seconds(absl::ToInt64Seconds(hang_timeout));
    }
    table_.Prepare(prepare);
    return world_.sent.back().gang_prepared();
  }

  void Commit(int64_t generation) {
    v1::CommitGang commit;
    *commit.mutable_gang() = Gang(generation);
    table_.Commit(commit);
  }

  // Two ranks that run and have opened their sessions.
  void StartTwo() {
    ASSERT_TRUE(Prepare(1, 2).accepted());
    Commit(1);
    for (int rank = 0; rank < 2; ++rank) {
      control_[rank] = std::make_shared<ControlQueue>();
      ASSERT_OK(table_.OpenSession(Token(rank), control_[rank]));
    }
    world_.sent.clear();
  }

  const std::string& Token(int64_t rank) {
    return world_.processes.at(rank)->token;
  }

  // One report of training progress.
  void Progress(int64_t rank, int64_t step) {
    v1::RankMessage message;
    message.set_step(step);
    message.mutable_progress()->set_phase("training");
    table_.OnRankMessage(Token(rank), message);
  }

  // The process is gone, and so is its session.
  void Exit(int64_t rank, int wait_status) {
    const std::string token = Token(rank);
    table_.OnExit(token, wait_status, "");
    table_.CloseSession(token);
  }

  void Finish(int64_t rank) {
    v1::RankMessage message;
    message.set_finished(true);
    table_.OnRankMessage(Token(rank), message);
    Exit(rank, 0);
  }

  void AdvanceAndTick(absl::Duration by) {
    clock_.Advance(by);
    table_.Tick();
  }

  std::vector<v1::RankExited> Exits() {
    std::vector<v1::RankExited> exits;
    for (const v1::WorkerMessage& message : world_.sent) {
      if (message.has_rank_exited()) exits.push_back(message.rank_exited());
    }
    return exits;
  }

  FakeClock clock_;
  FakeWorld world_;
  MetricsRegistry metrics_;
  GangTable table_;
  std::map<int64_t, std::shared_ptr<ControlQueue>> control_;
};

TEST_F(GangTableTest, AssignmentIsCompletedByTheWorker) {
  ASSERT_TRUE(Prepare(1, 2).accepted());
  Commit(1);
  ASSERT_OK_AND_ASSIGN(const v1::RankAssignment assignment,
                       table_.Assignment(Token(1)));
  EXPECT_EQ(assignment.device(), "cpu:1");
  EXPECT_EQ(assignment.threads(), 4);  // 8 cores, 2 devices
  EXPECT_EQ(assignment.job_dir(), "/jobs/kjv-1a2b");
  EXPECT_EQ(assignment.cache_dir(), "/jobs/cache");
  EXPECT_EQ(assignment.data_root(), "/data");
  EXPECT_EQ(assignment.worker(), "host-a");
}

TEST_F(GangTableTest, ThreadsAreSharedWithTheGangsOtherRanksOnTheHost) {
  v1::PrepareGang prepare;
  *prepare.mutable_gang() = Gang(1);
  v1::RankAssignment& assignment = *prepare.add_ranks();
  *assignment.mutable_gang() = Gang(1);
  for (int rank = 0; rank < 8; ++rank) assignment.add_host_ranks(rank);
  table_.Prepare(prepare);
  Commit(1);
  EXPECT_EQ(world_.processes.at(0)->assignment.threads(), 1);
}

TEST_F(GangTableTest, DevicesAreReservedAllOrNone) {
  ASSERT_TRUE(Prepare(1, 1).accepted());
  v1::PrepareGang other;
  other.mutable_gang()->set_job("other");
  other.mutable_gang()->set_generation(1);
  other.add_ranks()->set_device("cpu:1");
  other.add_ranks()->set_device("cpu:0");
  table_.Prepare(other);
  EXPECT_FALSE(world_.sent.back().gang_prepared().accepted());
  EXPECT_THAT(world_.sent.back().gang_prepared().reason(),
              HasSubstr("cpu:0 is not free on worker host-a"));
  // cpu:1 was not kept.
  other.mutable_ranks()->RemoveLast();
  table_.Prepare(other);
  EXPECT_TRUE(world_.sent.back().gang_prepared().accepted());
}

TEST_F(GangTableTest, StaleGenerationIsRefused) {
  ASSERT_TRUE(Prepare(2, 1).accepted());
  const v1::GangPrepared prepared = Prepare(1, 1);
  EXPECT_FALSE(prepared.accepted());
  EXPECT_THAT(prepared.reason(), HasSubstr("the newest is 2"));
}

TEST_F(GangTableTest, JobIdThatIsNoFolderNameIsRefused) {
  for (const std::string job : {"", "../up", "a/b", ".hidden"}) {
    v1::PrepareGang prepare;
    prepare.mutable_gang()->set_job(job);
    prepare.mutable_gang()->set_generation(1);
    prepare.add_ranks();
    table_.Prepare(prepare);
    EXPECT_FALSE(world_.sent.back().gang_prepared().accepted()) << job;
  }
}

TEST_F(GangTableTest, ReservationThatIsNotCommittedExpires) {
  ASSERT_TRUE(Prepare(1, 2).accepted());
  AdvanceAndTick(absl::Seconds(59));
  EXPECT_FALSE(table_.empty());
  AdvanceAndTick(absl::Seconds(1));
  EXPECT_TRUE(table_.empty());
  Commit(1);
  EXPECT_FALSE(world_.sent.back().gang_prepared().accepted());
}

TEST_F(GangTableTest, UnknownTokenIsRefused) {
  StartTwo();
  EXPECT_THAT(table_.Assignment("wrong"),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(table_.OpenSession("", nullptr),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(table_.OpenSession(Token(0), nullptr),
              StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(GangTableTest, ReportsGoOnWithGangAndRankAndBeforeTheEnd) {
  StartTwo();
  v1::RankMessage message;
  message.mutable_report()->mutable_step()->set_step(3);
  message.mutable_report()->set_rank(77);  // not the rank's to say
  table_.OnRankMessage(Token(1), message);
  Finish(1);
  ASSERT_EQ(world_.sent.size(), 2u);
  EXPECT_EQ(world_.sent[0].rank_report().rank(), 1);
  EXPECT_EQ(world_.sent[0].rank_report().gang().job(), "kjv-1a2b");
  EXPECT_EQ(world_.sent[1].rank_exited().cause(), v1::CAUSE_UNSPECIFIED);
}

TEST_F(GangTableTest, EndIsReportedOnlyWhenTheSessionIsDrained) {
  StartTwo();
  table_.OnExit(Token(0), 7 << 8, "");
  EXPECT_THAT(Exits(), IsEmpty());
  table_.CloseSession(Token(0));
  ASSERT_EQ(Exits().size(), 1u);
  EXPECT_EQ(Exits()[0].exit_code(), 7);
}

TEST_F(GangTableTest, SessionThatNeverEndsDelaysTheReportForTwoSecondsOnly) {
  StartTwo();
  table_.OnExit(Token(0), 7 << 8, "");
  AdvanceAndTick(absl::Seconds(2));
  EXPECT_EQ(Exits().size(), 1u);
}

TEST_F(GangTableTest, DevicesAreFreeWhenAllRanksHaveEnded) {
  StartTwo();
  Finish(0);
  EXPECT_FALSE(table_.empty());
  Finish(1);
  EXPECT_TRUE(table_.empty());
  EXPECT_TRUE(Prepare(2, 2).accepted());
}

TEST_F(GangTableTest, CrashOfOneRankAbortsTheOthersAsSecondary) {
  StartTwo();
  Exit(0, SIGSEGV);
  const auto control = control_[1]->Pop();
  ASSERT_TRUE(control.has_value());
  EXPECT_THAT(control->abort(), AllOf(HasSubstr("rank 0 ended"),
                                      HasSubstr("Segmentation fault")));
  Exit(1, 3 << 8);
  ASSERT_EQ(Exits().size(), 2u);
  EXPECT_EQ(Exits()[0].cause(), v1::CAUSE_SIGNAL);
  EXPECT_FALSE(Exits()[0].secondary());
  EXPECT_TRUE(Exits()[1].secondary());
}

TEST_F(GangTableTest, AbortedRankThatStaysIsKilledAfterTwoSeconds) {
  StartTwo();
  Exit(0, SIGSEGV);
  AdvanceAndTick(absl::Milliseconds(1900));
  EXPECT_THAT(world_.processes[1]->signals, IsEmpty());
  AdvanceAndTick(absl::Milliseconds(100));
  EXPECT_THAT(world_.processes[1]->signals, ElementsAre(SIGKILL));
}

TEST_F(GangTableTest, RankThatDiedByItselfIsPrimaryThoughAPeerNoticedFirst) {
  StartTwo();
  // Rank 0 is dead; rank 1 sees the broken connection before we see the end.
  world_.processes[0]->state = 'Z';
  v1::RankMessage message;
  message.mutable_failure()->set_cause(v1::CAUSE_EXIT);
  message.mutable_failure()->set_secondary(true);
  message.mutable_failure()->set_message("rank 0 is gone");
  table_.OnRankMessage(Token(1), message);
  Exit(1, 1 << 8);
  Exit(0, SIGKILL);
  ASSERT_EQ(Exits().size(), 2u);
  EXPECT_TRUE(Exits()[0].secondary());
  EXPECT_EQ(Exits()[1].rank(), 0);
  EXPECT_FALSE(Exits()[1].secondary());
}

TEST_F(GangTableTest, OomKillIsToldFromASignalByTheCounter) {
  StartTwo();
  world_.oom_kills = 1;
  Exit(0, SIGKILL);
  EXPECT_EQ(Exits()[0].cause(), v1::CAUSE_OOM_KILL);
}

TEST_F(GangTableTest, StopIsSigtermThenSigkillAfterTheGrace) {
  StartTwo();
  v1::StopGang stop;
  *stop.mutable_gang() = Gang(1);
  stop.set_reason("cancelled");
  stop.mutable_grace()->set_seconds(4);
  table_.Stop(stop);
  EXPECT_THAT(world_.processes[0]->signals, ElementsAre(SIGTERM, SIGCONT));
  Exit(0, SIGTERM);
  AdvanceAndTick(absl::Seconds(4));
  EXPECT_THAT(world_.processes[1]->signals,
              ElementsAre(SIGTERM, SIGCONT, SIGKILL));
  Exit(1, SIGKILL);
  ASSERT_EQ(Exits().size(), 2u);
  EXPECT_TRUE(Exits()[0].secondary());
  EXPECT_TRUE(Exits()[1].secondary());
  EXPECT_EQ(Exits()[0].message(), "stopped: cancelled");
}

TEST_F(GangTableTest, StopDropsAReservation) {
  ASSERT_TRUE(Prepare(1, 2).accepted());
  v1::StopGang stop;
  *stop.mutable_gang() = Gang(1);
  table_.Stop(stop);
  EXPECT_TRUE(table_.empty());
}

TEST_F(GangTableTest, StaleGangOfTheWelcomeIsKilled) {
  StartTwo();
  v1::Welcome welcome;
  *welcome.add_stale() = Gang(1);
  table_.KillStale(welcome);
  EXPECT_THAT(world_.processes[0]->signals, ElementsAre(SIGKILL));
  EXPECT_THAT(world_.processes[1]->signals, ElementsAre(SIGKILL));
}

TEST_F(GangTableTest, NewGenerationKillsTheOldOne) {
  StartTwo();
  EXPECT_FALSE(Prepare(2, 2).accepted());
  EXPECT_THAT(world_.processes[0]->signals, ElementsAre(SIGKILL));
  Exit(0, SIGKILL);
  Exit(1, SIGKILL);
  EXPECT_TRUE(Prepare(2, 2).accepted());
}

TEST_F(GangTableTest, SilentRankIsKilledAtItsLimitAndNamed) {
  StartTwo();
  for (int step = 1; step <= 5; ++step) {
    clock_.Advance(absl::Seconds(1));
    Progress(0, step);
    Progress(1, step);
  }
  // Rank 0 goes on a little: rank 1 is the one that hangs.
  AdvanceAndTick(absl::Seconds(3));
  Progress(0, 6);
  AdvanceAndTick(absl::Seconds(12));
  EXPECT_THAT(world_.processes[1]->signals, IsEmpty());
  AdvanceAndTick(absl::Milliseconds(100));
  EXPECT_THAT(world_.processes[1]->signals, ElementsAre(SIGKILL));
  EXPECT_THAT(world_.processes[0]->signals, IsEmpty());
  Exit(1, SIGKILL);
  ASSERT_EQ(Exits().size(), 1u);
  EXPECT_EQ(Exits()[0].cause(), v1::CAUSE_HANG);
  EXPECT_FALSE(Exits()[0].secondary());
  EXPECT_THAT(Exits()[0].message(),
              HasSubstr("no progress for 15.1s (limit 15s) in step 5, "
                        "training"));
}

TEST_F(GangTableTest, StoppedRankIsNamedInSecondsThoughAllAreSilent) {
  StartTwo();
  for (int step = 1; step <= 5; ++step) {
    clock_.Advance(absl::Seconds(1));
    Progress(1, step);
    Progress(0, step);
  }
  world_.processes[1]->state = 'T';
  AdvanceAndTick(absl::Milliseconds(4900));
  EXPECT_THAT(world_.processes[1]->signals, IsEmpty());
  AdvanceAndTick(absl::Milliseconds(100));
  EXPECT_THAT(world_.processes[1]->signals, ElementsAre(SIGKILL));
  Exit(1, SIGKILL);
  EXPECT_THAT(Exits()[0].message(), HasSubstr("stopped (SIGSTOP)"));
}

TEST_F(GangTableTest, HangTimeoutOfTheJobReplacesTheDefault) {
  ASSERT_TRUE(Prepare(1, 1, absl::Seconds(40)).accepted());
  Commit(1);
  for (int step = 1; step <= 5; ++step) {
    clock_.Advance(absl::Seconds(1));
    Progress(0, step);
  }
  AdvanceAndTick(absl::Seconds(40));
  EXPECT_THAT(world_.processes[0]->signals, IsEmpty());
  AdvanceAndTick(absl::Seconds(1));
  EXPECT_THAT(world_.processes[0]->signals, ElementsAre(SIGKILL));
}

TEST_F(GangTableTest, RankThatNeverReportsHangsAfterTwoMinutes) {
  ASSERT_TRUE(Prepare(1, 1).accepted());
  Commit(1);
  AdvanceAndTick(absl::Seconds(120));
  EXPECT_THAT(world_.processes[0]->signals, IsEmpty());
  AdvanceAndTick(absl::Seconds(1));
  Exit(0, SIGKILL);
  EXPECT_EQ(Exits()[0].cause(), v1::CAUSE_HANG);
  EXPECT_THAT(Exits()[0].message(), HasSubstr("while it started"));
}

TEST_F(GangTableTest, RankThatCannotBeStartedFailsTheGang) {
  ASSERT_TRUE(Prepare(1, 2).accepted());
  world_.start_error = absl::NotFoundError("can't run lockstep-rank");
  world_.sent.clear();
  Commit(1);
  ASSERT_EQ(Exits().size(), 2u);
  EXPECT_EQ(Exits()[0].cause(), v1::CAUSE_INTERNAL);
  EXPECT_THAT(Exits()[0].message(), HasSubstr("can't run"));
  EXPECT_TRUE(table_.empty());
}

TEST_F(GangTableTest, ShutDownLosesTheWorkerAndTakesNoNewGang) {
  StartTwo();
  table_.ShutDown("worker host-a shut down: SIGTERM", absl::Seconds(5));
  EXPECT_THAT(world_.processes[0]->signals, ElementsAre(SIGTERM, SIGCONT));
  Exit(0, SIGTERM);
  Exit(1, SIGTERM);
  ASSERT_EQ(Exits().size(), 2u);
  EXPECT_EQ(Exits()[0].cause(), v1::CAUSE_LOST_WORKER);
  EXPECT_FALSE(Exits()[0].secondary());
  const v1::GangPrepared prepared = Prepare(2, 2);
  EXPECT_FALSE(prepared.accepted());
  EXPECT_THAT(prepared.reason(), HasSubstr("shutting down"));
}

TEST_F(GangTableTest, CommittedCheckpointIsToldToTheGangsRanks) {
  StartTwo();
  v1::CheckpointCommitted committed;
  *committed.mutable_gang() = Gang(1);
  committed.set_step(100);
  table_.CheckpointCommitted(committed);
  EXPECT_EQ(control_[0]->Pop()->checkpoint_committed().step(), 100);
  EXPECT_EQ(control_[1]->Pop()->checkpoint_committed().step(), 100);
}

TEST_F(GangTableTest, HeartbeatAndHelloTellOfRunningRanks) {
  StartTwo();
  Progress(1, 9);
  const v1::Heartbeat heartbeat = table_.MakeHeartbeat();
  ASSERT_EQ(heartbeat.ranks_size(), 2);
  EXPECT_EQ(heartbeat.ranks(1).step(), 9);
  EXPECT_EQ(heartbeat.ranks(1).progress().phase(), "training");
  ASSERT_EQ(table_.RunningRanks().size(), 2u);
  EXPECT_EQ(table_.RunningRanks()[1].device(), "cpu:1");
}

TEST_F(GangTableTest, MetricsCountDevicesRanksAndExits) {
  StartTwo();
  Progress(0, 4);
  table_.UpdateMetrics();
  EXPECT_THAT(
      metrics_.Text(),
      AllOf(HasSubstr("lockstep_worker_devices{state=\"busy\"} 2"),
            HasSubstr("lockstep_worker_ranks_running 2"),
            HasSubstr("lockstep_worker_rank_step{job=\"kjv-1a2b\",rank=\"0\"} "
                      "4")));
  Exit(0, SIGSEGV);
  Exit(1, 3 << 8);
  table_.UpdateMetrics();
  EXPECT_THAT(
      metrics_.Text(),
      AllOf(HasSubstr("lockstep_worker_devices{state=\"free\"} 2"),
            HasSubstr("lockstep_worker_ranks_exited_total{cause=\"signal\"} 1"),
            ::testing::Not(HasSubstr("rank=\"0\""))));
}

}  // namespace
}  // namespace lockstep
