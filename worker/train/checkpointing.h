// A training state to and from checkpoints, by logical tensors: any layout's
// checkpoint loads in any other.
#ifndef LOCKSTEP_WORKER_TRAIN_CHECKPOINTING_H_
#define LOCKSTEP_WORKER_TRAIN_CHECKPOINTING_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/v1/checkpoint.pb.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/train/rank_context.h"
#include "worker/train/training_state.h"

namespace lockstep {

// What a manifest says beside the state.
struct CheckpointFacts {
  std::string job_dir;
  std::string job;
  int64_t generation = 0;
  v1::JobSpec spec;
  std::string data_digest;
  std::vector<std::string> labels;
  std::vector<std::string> tokenizer_files;
};

// All ranks call it: replicas write a part each, rank 0 finishes and reports
// the directory as prepared. Errors carry the cause disk_full where it is.
absl::Status SaveCheckpoint(const RankContext& context,
                            const TrainingState& state,
                            const CheckpointFacts& facts);

// Fills parameters and, where there is an optimizer, its states; sets step and
// data position. FAILED_PRECONDITION if a tensor is missing or of another
// shape.
absl::Status LoadCheckpoint(const CheckpointReader& reader, Stream& stream,
                            TrainingState& state);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_CHECKPOINTING_H_
