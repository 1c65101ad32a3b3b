// The manifest of a checkpoint: its text, and the rules that its slices and
// file names follow (docs/formats/checkpoint.md).
#ifndef LOCKSTEP_WORKER_CHECKPOINT_MANIFEST_H_
#define LOCKSTEP_WORKER_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/v1/checkpoint.pb.h"
#include "worker/checkpoint/checkpoint.h"

namespace lockstep {

// 2: slices may hold some columns only.
inline constexpr int64_t kCheckpointFormatVersion = 2;
inline constexpr char kManifestName[] = "manifest.json";

// Name and kind of a tensor.
using TensorKey = std::pair<std::string, std::string>;
// Slices of each tensor in order of their columns, then of their offsets.
using SlicesByTensor =
    std::map<TensorKey, std::vector<v1::CheckpointManifest::Slice>>;

absl::StatusOr<std::string> PrintManifest(
    const v1::CheckpointManifest& manifest);
// Reads DIRECTORY/manifest.json, hostile until CheckManifest has passed it.
// DATA_LOSS if it is broken; FAILED_PRECONDITION if its version is newer.
absl::StatusOr<v1::CheckpointManifest> ReadManifest(
    const std::string& directory);

// The columns that a slice holds, never 0 of a tensor that has some.
ColumnRange ColumnsOf(const v1::CheckpointManifest::Slice& slice);

// Checks that step and data position aren't negative, that file names are plain
// and listed once, that slices and tokenizer files name listed files, and that
// the slices of each tensor cover each of its elements exactly once, columns by
// columns.
// INVALID_ARGUMENT with what is wrong.
absl::StatusOr<SlicesByTensor> CheckManifest(
    const v1::CheckpointManifest& manifest);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_CHECKPOINT_MANIFEST_H_
