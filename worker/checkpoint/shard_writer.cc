// WriteShard: a rank's part of a checkpoint; and how its description travels to
// rank 0.
#include <errno.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/file_access.h"
#include "worker/checkpoint/safetensors.h"

namespace lockstep {
namespace {

absl::Status WriteFile(const std::string& path,
                       const std::vector<SafetensorsEntry>& entries,
                       absl::Span<const TensorSlice> slices,
                       v1::CheckpointManifest::File& description) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> file,
                   FileWriter::Create(path));
  const std::string header = SafetensorsHeader(entries);
  RETURN_IF_ERROR(file->Write(header.data(), header.size()));
  for (const TensorSlice& slice : slices) {
    RETURN_IF_ERROR(
        file->Write(slice.values.data(), slice.values.size() * sizeof(float)));
  }
  RETURN_IF_ERROR(file->Finish());
  description.set_bytes(file->bytes());
  description.set_xxh3(file->hash());
  return absl::OkStatus();
}

}  // namespace

std::string SerializeShard(const ShardDescription& shard) {
  v1::CheckpointManifest part;
  for (const auto& slice : shard.slices) *part.add_slices() = slice;
  *part.add_files() = shard.file;
  return part.SerializeAsString();
}

absl::StatusOr<ShardDescription> ParseShard(const std::string& text) {
  v1::CheckpointManifest part;
  if (!part.ParseFromString(text) || part.files_size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a shard's description of ", text.size(), " bytes can't be parsed"));
  }
  return ShardDescription{{part.slices().begin(), part.slices().end()},
                          part.files(0)};
}

absl::StatusOr<ShardDescription> WriteShard(
    const std::string& directory, int rank,
    absl::Span<const TensorSlice> slices) {
  const std::string name = absl::StrCat("rank-", rank, ".safetensors");
  ShardDescription shard;
  shard.file.set_name(name);
  std::vector<SafetensorsEntry> entries;
  std::set<std::string> keys;
  for (const TensorSlice& slice : slices) {
    const auto count = static_cast<int64_t>(slice.values.size());
    const std::optional<int64_t> elements = ElementsOf(slice.global_shape);
    if (!elements.has_value() || slice.offset < 0 || slice.offset > *elements ||
        count > *elements - slice.offset) {
      return absl::InvalidArgumentError(absl::StrCat(
          "rank ", rank, ": ", slice.kind, " of tensor ", slice.name,
          ": elements ", slice.offset, " + ", count, " don't fit its shape"));
    }
    // A whole tensor keeps its shape, a part of it is a list of elements.
    const bool whole = slice.offset == 0 && count == *elements;
    SafetensorsEntry entry;
    entry.key = absl::StrCat(slice.kind, "/", slice.name);
    if (!whole) absl::StrAppend(&entry.key, "@", slice.offset);
    entry.shape = whole ? slice.global_shape : std::vector<int64_t>{count};
    entry.elements = count;
    if (!keys.insert(entry.key).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, ": ", entry.key, " is given twice"));
    }
    v1::CheckpointManifest::Slice& described = shard.slices.emplace_back();
    described.set_name(slice.name);
    described.set_kind(slice.kind);
    for (int64_t extent : slice.global_shape) {
      described.add_global_shape(extent);
    }
    described.set_offset(slice.offset);
    described.set_count(count);
    described.set_file(name);
    described.set_key(entry.key);
    entries.push_back(std::move(entry));
  }
  if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    return FileError(errno, "making", directory);
  }
  if (absl::Status status = WriteFile(absl::StrCat(directory, "/", name),
                                      entries, slices, shard.file);
      !status.ok()) {
    // Without this shard the others' are worth nothing, and the disk may be
    // full.
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
    return status;
  }
  return shard;
}

}  // namespace lockstep
