// Checkpoints: directories of safetensors shards and a manifest, in logical
// tensors, so that any layout loads them (docs/formats/checkpoint.md).
//
// A checkpoint `step-N.gG` is written as `.step-N.gG.tmp`: every rank writes
// its shard (WriteShard) and hands its description to rank 0, which writes the
// manifest, syncs, and renames once (FinishCheckpoint). It counts once the
// coordinator has stored it.
//
// Errors: RESOURCE_EXHAUSTED on a full disk, with path and bytes; DATA_LOSS on
// a bad checksum, size or header; NOT_FOUND for what isn't there.
// Everything read from a checkpoint is hostile until checked.
#ifndef LOCKSTEP_WORKER_CHECKPOINT_CHECKPOINT_H_
#define LOCKSTEP_WORKER_CHECKPOINT_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/v1/checkpoint.pb.h"

namespace lockstep {

// Columns [begin, begin + count) of a tensor's last dim; count 0: all of them.
struct ColumnRange {
  int64_t begin = 0;
  int64_t count = 0;
};

// A flat range of a logical tensor's row-major elements, or of those in some of
// its columns, that this rank holds, fp32, in host memory.
struct TensorSlice {
  std::string name;
  // "parameter", "first_moment", "second_moment" or "momentum".
  std::string kind;
  std::vector<int64_t> global_shape;
  int64_t offset = 0;
  absl::Span<const float> values;
  ColumnRange columns = {};
};

// What one rank wrote: part of the manifest.
struct ShardDescription {
  std::vector<v1::CheckpointManifest::Slice> slices;
  v1::CheckpointManifest::File file;
};
// For sending to rank 0.
std::string SerializeShard(const ShardDescription& shard);
absl::StatusOr<ShardDescription> ParseShard(const std::string& text);

// JOB_DIR/.step-N.gG.tmp and JOB_DIR/step-N.gG.
std::string TemporaryCheckpointPath(const std::string& job_dir, int64_t step,
                                    int64_t generation);
std::string CheckpointPath(const std::string& job_dir, int64_t step,
                           int64_t generation);

// Writes and syncs DIR/rank-R.safetensors; makes DIR if need be. When it fails
// it removes that file; the others' stay, for they may still be writing them.
// `alive` is called between blocks; it may be empty.
absl::StatusOr<ShardDescription> WriteShard(
    const std::string& directory, int rank,
    absl::Span<const TensorSlice> slices,
    const std::function<void()>& alive = {});

struct FinishedCheckpoint {
  std::string path;
  std::string manifest_hash;
  uint64_t bytes = 0;
};
// Copies the tokenizer files, writes the manifest (its slices and files are
// filled in from `shards`), syncs all, renames. Rank 0 only. A finished
// directory of the same name is kept if its hash is the same, else replaced.
absl::StatusOr<FinishedCheckpoint> FinishCheckpoint(
    const std::string& job_dir, v1::CheckpointManifest manifest,
    absl::Span<const ShardDescription> shards,
    const std::vector<std::string>& tokenizer_files);

// Removes what the ranks have written of a checkpoint that won't be finished.
// (FinishCheckpoint does it itself when it fails.)
void DiscardCheckpoint(const std::string& job_dir, int64_t step,
                       int64_t generation);

// Removes the temporary folders that attempts of generations before
// `generation` left in `job_dir`, and logs each; failures are logged only. Rank
// 0 calls it as its attempt starts: ranks of an older generation that still run
// have lost the job, and what they write won't count.
void SweepStaleCheckpoints(const std::string& job_dir, int64_t generation);

// Threads: const functions may be called from any thread.
class CheckpointReader {
 public:
  // Reads and checks the manifest; verifies the files' sizes and checksums.
  // `alive` is called between blocks; it may be empty. Files are open only
  // while they are read: a checkpoint may have thousands.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      const std::string& directory, const std::function<void()>& alive = {});
  virtual ~CheckpointReader() = default;
  virtual const std::string& directory() const = 0;
  virtual const v1::CheckpointManifest& manifest() const = 0;
  virtual bool Contains(const std::string& name,
                        const std::string& kind) const = 0;
  // Global shape of a tensor that it contains (CHECKed).
  virtual std::vector<int64_t> Shape(const std::string& name,
                                     const std::string& kind) const = 0;
  // Elements [offset, offset + out.size()) of `columns` of a logical tensor,
  // row-major, gathered from as many slices as it takes; reads only those
  // bytes.
  virtual absl::Status Read(const std::string& name, const std::string& kind,
                            const ColumnRange& columns, int64_t offset,
                            absl::Span<float> out) const = 0;
  // Absolute paths of the tokenizer's and labels' files.
  virtual std::vector<std::string> tokenizer_files() const = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_CHECKPOINT_CHECKPOINT_H_
