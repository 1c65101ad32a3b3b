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
#include "worker/dist/device_mesh.h"
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

// The groups that a rank takes part in.
struct RankGroups {
  // All ranks of the job.
  ProcessGroup& world;
  // Those that share one replica's states, by the layout's zero_stage, and
  // those that hold the same part of them.
  ProcessGroup& shards;
  ProcessGroup& replicas;
  // Those that share each sequence, and those that share each layer.
  ProcessGroup& sequence;
  ProcessGroup& tensor;
  // Those that have the other stages of this rank's layers; `peers` is null
  // where there is one stage.
  ProcessGroup& stages;
  PeerLink* peers = nullptr;

  // Aborts what is under way in any of them.
  void AbortAll() const;
};
RankGroups GroupsOf(const DeviceMesh& mesh);
// Of a job of one rank: `group` has one, and stands for all.
RankGroups OneRankGroups(ProcessGroup& group);

struct RankContext : RankGroups {
  Device& device;
  v1::Layout layout;
  DataShare share;
  Reporter& reporter;
  Clock& clock;

  // Rank 0 of the world speaks for the job.
  bool speaks() const { return world.rank() == 0; }
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_RANK_CONTEXT_H_
