// The gangs that a worker holds, as data: what GangTable keeps of each.
#ifndef LOCKSTEP_WORKER_AGENT_GANG_RECORD_H_
#define LOCKSTEP_WORKER_AGENT_GANG_RECORD_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lockstep/v1/worker_service.pb.h"
#include "worker/agent/control_queue.h"
#include "worker/agent/hang_tracker.h"
#include "worker/agent/rank_process.h"
#include "worker/agent/rank_verdict.h"

namespace lockstep {

struct GangKey {
  std::string job;
  int64_t generation = 0;

  static GangKey Of(const v1::GangId& id) {
    return {id.job(), id.generation()};
  }
  v1::GangId ToProto() const {
    v1::GangId id;
    id.set_job(job);
    id.set_generation(generation);
    return id;
  }
  friend auto operator<=>(const GangKey&, const GangKey&) = default;
  // "kjv-1a2b.g3", as checkpoints are named.
  friend std::ostream& operator<<(std::ostream& out, const GangKey& key) {
    return out << key.job << ".g" << key.generation;
  }
};

struct RankRecord {
  // With all that the worker fills in.
  v1::RankAssignment assignment;
  // The secret by which the rank's process is known; new for each start.
  std::string token;
  // Absent until the gang is committed.
  std::unique_ptr<RankHandle> process;
  // OOM kills counted when the process started.
  int64_t oom_kills_at_start = 0;
  // Absent until the rank has opened its session, and after it has ended.
  std::shared_ptr<ControlQueue> control;
  std::optional<HangTracker> progress_age;
  int64_t step = 0;
  v1::Progress progress;
  // When SIGKILL follows; absent: nothing is being stopped.
  std::optional<absl::Duration> kill_at;
  // When the process ended; its wait status and the rest are in `end`.
  std::optional<absl::Duration> exited_at;
  RankEnd end;
  // RankExited has been sent.
  bool reported = false;
};

struct GangRecord {
  enum class State : uint8_t { kReserved, kRunning };
  State state = State::kReserved;
  absl::Duration reserved_at;
  std::vector<RankRecord> ranks;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_GANG_RECORD_H_
