// A small model's checkpoint for tests: two tensors with optimizer state, cut
// over several ranks at places that don't align.
#ifndef LOCKSTEP_TESTS_UNIT_CHECKPOINT_CHECKPOINT_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_CHECKPOINT_CHECKPOINT_FIXTURE_H_

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/status_macros.h"
#include "tests/testing/temp_dir.h"
#include "worker/checkpoint/checkpoint.h"

namespace lockstep {
namespace testing {

struct NamedTensor {
  std::string name;
  std::string kind;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

inline std::vector<NamedTensor> SmallModel() {
  std::vector<NamedTensor> tensors = {
      {"blocks.0.q.weight", "parameter", {7, 3}, {}},
      {"blocks.0.q.weight", "first_moment", {7, 3}, {}},
      {"head.bias", "parameter", {5}, {}},
  };
  float next = 0.5f;
  for (NamedTensor& tensor : tensors) {
    int64_t elements = 1;
    for (int64_t extent : tensor.shape) elements *= extent;
    tensor.values.resize(elements);
    std::iota(tensor.values.begin(), tensor.values.end(), next);
    next += 100.0f;
  }
  return tensors;
}

inline v1::CheckpointManifest SmallManifest() {
  v1::CheckpointManifest manifest;
  manifest.set_job("kjv-1a2b");
  manifest.set_generation(2);
  manifest.set_step(40);
  manifest.set_data_position(1280);
  manifest.mutable_spec()->set_name("kjv");
  return manifest;
}

// The part of each tensor that `rank` of `ranks` holds.
inline std::vector<TensorSlice> SlicesOf(const std::vector<NamedTensor>& model,
                                         int rank, int ranks) {
  std::vector<TensorSlice> slices;
  for (const NamedTensor& tensor : model) {
    const int64_t elements = tensor.values.size();
    const int64_t begin = rank * elements / ranks;
    const int64_t end = (rank + 1) * elements / ranks;
    slices.push_back(
        {tensor.name, tensor.kind, tensor.shape, begin,
         absl::MakeConstSpan(tensor.values).subspan(begin, end - begin)});
  }
  return slices;
}

// Writes all ranks' shards; their descriptions go through their text form.
inline absl::StatusOr<std::vector<ShardDescription>> WriteShards(
    const std::string& job_dir, const std::vector<NamedTensor>& model,
    int ranks) {
  std::vector<ShardDescription> shards;
  for (int rank = 0; rank < ranks; ++rank) {
    ASSIGN_OR_RETURN(const ShardDescription shard,
                     WriteShard(TemporaryCheckpointPath(job_dir, 40, 2), rank,
                                SlicesOf(model, rank, ranks)));
    ASSIGN_OR_RETURN(ShardDescription received,
                     ParseShard(SerializeShard(shard)));
    shards.push_back(std::move(received));
  }
  return shards;
}

// JOB_DIR/step-40.g2, by `ranks` ranks, with a tokenizer.
inline absl::StatusOr<FinishedCheckpoint> WriteSmallCheckpoint(
    const TempDir& job_dir, int ranks) {
  const std::vector<NamedTensor> model = SmallModel();
  ASSIGN_OR_RETURN(const std::vector<ShardDescription> shards,
                   WriteShards(job_dir.path(), model, ranks));
  const std::string tokenizer =
      job_dir.Write("cache/tokenizer.model", "a tokenizer");
  return FinishCheckpoint(job_dir.path(), SmallManifest(), shards, {tokenizer});
}

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_CHECKPOINT_CHECKPOINT_FIXTURE_H_
