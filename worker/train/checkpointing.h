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
#include "worker/data/prepared_data.h"
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
// the directory as prepared.
absl::Status SaveCheckpoint(const RankContext& context,
                            const TrainingState& state,
                            const CheckpointFacts& facts);

// Fills parameters and, where there is an optimizer, its states; sets step and
// data position. FAILED_PRECONDITION if a tensor is missing or of another
// shape.
absl::Status LoadCheckpoint(const RankContext& context,
                            const CheckpointReader& reader,
                            TrainingState& state);

// FAILED_PRECONDITION, with both digests, unless `data` (of the job `spec`)
// hold what the checkpoint was trained on. Names and times of files are free to
// change.
absl::Status CheckSameData(const CheckpointReader& reader,
                           const v1::JobSpec& spec, const PreparedData& data);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_CHECKPOINTING_H_
