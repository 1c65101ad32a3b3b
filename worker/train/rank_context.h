// What a rank's work stands on: its device, its groups, its share and its
// voice. Passed in, never looked up.
#ifndef LOCKSTEP_WORKER_TRAIN_RANK_CONTEXT_H_
#define LOCKSTEP_WORKER_TRAIN_RANK_CONTEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "kernels/device.h"
#include "lockstep/v1/worker_service.pb.h"
#include "worker/data/batch_loader.h"
#include "worker/dist/process_group.h"

namespace lockstep {

// Where reports go. Threads: any.
class Reporter {
 public:
  virtual ~Reporter() = default;
  // Kept by the coordinator.
  virtual void Report(v1::RankReport report) = 0;
  // The latest only; also tells that the rank makes progress.
  virtual void SetProgress(int64_t step, v1::Progress progress) = 0;

  // Progress that is nothing but a phase ("loading").
  void SetPhase(int64_t step, std::string_view phase) {
    v1::Progress progress;
    progress.set_phase(std::string(phase));
    SetProgress(step, std::move(progress));
  }
};

struct RankContext {
  Device& device;
  // All ranks of the job.
  ProcessGroup& world;
  // Those that see different samples; among them those that share one replica's
  // states, by the layout's zero_stage, and those that hold the same part of
  // them.
  ProcessGroup& data;
  ProcessGroup& shards;
  ProcessGroup& replicas;
  v1::Layout layout;
  DataShare share;
  Reporter& reporter;
  Clock& clock;

  // Rank 0 of the world speaks for the job.
  bool speaks() const { return world.rank() == 0; }
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_RANK_CONTEXT_H_
