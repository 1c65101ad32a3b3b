// A gang table whose ranks' processes, coordinator and time are a test's.
#ifndef LOCKSTEP_TESTS_UNIT_AGENT_GANG_TABLE_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_AGENT_GANG_TABLE_FIXTURE_H_

#include <cstdint>
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
#include "worker/agent/gang_table.h"

namespace lockstep {
namespace testing {

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

inline v1::GangId Gang(int64_t generation) {
  v1::GangId gang;
  gang.set_job("kjv-1a2b");
  gang.set_generation(generation);
  return gang;
}

// A table of worker host-a with two devices, in a world that only pretends.
class GangTableFixture : public ::testing::Test {
 protected:
  GangTableFixture() : table_(Options()) {}

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

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_AGENT_GANG_TABLE_FIXTURE_H_
