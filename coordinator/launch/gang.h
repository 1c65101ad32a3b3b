// Gang: one attempt of a job while it lives, as the supervisor keeps it. Plain
// state and the questions asked of it; what happens next is decided in
// gang_supervisor.h.
#ifndef LOCKSTEP_COORDINATOR_LAUNCH_GANG_H_
#define LOCKSTEP_COORDINATOR_LAUNCH_GANG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/launch/gang_launcher.h"
#include "coordinator/membership/worker_registry.h"
#include "coordinator/recovery/attempt_verdict.h"
#include "coordinator/schedule/gang_reservation.h"
#include "coordinator/store/job_store.h"
#include "lockstep/v1/worker_service.pb.h"

namespace lockstep {

enum class GangPhase {
  kNumbering,  // its generation is on the way to the store
  kPreparing,  // workers are asked to reserve
  kStarting,   // committed; not all ranks are running yet
  kRunning,
  kStopping,  // failed or cancelled; ranks are being ended
};

struct GangRank {
  WorkerLife life;
  std::string device;
  bool started = false;
  bool gone = false;
  // Set after a reconnect whose hello didn't list it: what to do if its end
  // isn't reported until then (Clock::Uptime).
  std::optional<absl::Duration> missing_since;
};

struct Gang {
  v1::GangId id;
  GangPhase phase = GangPhase::kNumbering;
  AttemptRecord attempt;
  std::vector<GangRank> ranks;
  // Until it is committed.
  std::optional<LaunchOrder> order;
  std::optional<GangReservation> reservation;
  AttemptVerdict verdict;
  // A user wants it ended.
  std::optional<std::string> cancel_reason;
  // When the phase began (Clock::Uptime).
  absl::Duration phase_began;
  // When devices were found for it (Clock::Uptime); unset for adopted ones.
  std::optional<absl::Duration> placed;
  // Newest checkpoint of this generation.
  int64_t committed_step = 0;
  // Latest progress by rank.
  std::map<int64_t, v1::Progress> progress;

  // Each life of a worker that runs ranks of it, once.
  std::vector<WorkerLife> Lives() const;
  bool AllStarted() const;
  bool AllGone() const;
  // Lowest rank of a worker's life that isn't gone.
  std::optional<int64_t> LowestRankOn(const WorkerLife& life) const;
  bool RunsOn(const WorkerLife& life) const;
  bool Committed() const {
    return phase != GangPhase::kNumbering && phase != GangPhase::kPreparing;
  }
};

// "job kjv-1a2b generation 1", for logs and messages.
std::string GangText(const v1::GangId& gang);

// For changes that nobody waits for.
void LogIfError(const absl::Status& status, const v1::GangId& gang);

}  // namespace lockstep

#endif  // LOCKSTEP_COORDINATOR_LAUNCH_GANG_H_
