// WriteShard: a rank's part of a checkpoint; and how its description travels to
// rank 0.
#include <errno.h>
#include <sys/stat.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/file_error.h"
#include "common/files/file_writer.h"
#include "common/status_macros.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/checkpoint_file.h"
#include "worker/checkpoint/safetensors.h"

namespace lockstep {
namespace {

// Bytes written between two signs of life.
constexpr size_t kBlockBytes = size_t{16} << 20;

absl::Status WriteFile(const std::string& path,
                       const std::vector<SafetensorsEntry>& entries,
                       absl::Span<const TensorSlice> slices,
                       const std::function<void()>& alive,
                       v1::CheckpointManifest::File& description) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> file,
                   FileWriter::Create(path, kCheckpointFile));
  RETURN_IF_ERROR(file->Append(SafetensorsHeader(entries)));
  for (const TensorSlice& slice : slices) {
    std::string_view bytes = {
        reinterpret_cast<const char*>(slice.values.data()),
        slice.values.size() * sizeof(float)};
    while (!bytes.empty()) {
      if (alive) alive();
      const std::string_view block = bytes.substr(0, kBlockBytes);
      RETURN_IF_ERROR(file->Append(block));
      bytes.remove_prefix(block.size());
    }
  }
  ASSIGN_OR_RETURN(const WrittenFile written, file->Finish());
  description.set_bytes(written.bytes);
  description.set_xxh3(written.hash);
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
    absl::Span<const TensorSlice> slices, const std::function<void()>& alive) {
  const std::string name = absl::StrCat("rank-", rank, ".safetensors");
  ShardDescription shard;
  shard.file.set_name(name);
  std::vector<SafetensorsEntry> entries;
  std::set<std::string> keys;
  for (const TensorSlice& slice : slices) {
    const auto count = static_cast<int64_t>(slice.values.size());
    std::optional<int64_t> elements = ElementsOf(slice.global_shape);
    if (elements.has_value() && slice.columns.count > 0) {
      elements = *elements / slice.global_shape.back() * slice.columns.count;
    }
    if (!elements.has_value() || slice.offset < 0 || slice.offset > *elements ||
        count > *elements - slice.offset) {
      return absl::InvalidArgumentError(absl::StrCat(
          "rank ", rank, ": ", slice.kind, " of tensor ", slice.name,
          ": elements ", slice.offset, " + ", count, " don't fit its shape"));
    }
    // A whole tensor keeps its shape, a part of it is a list of elements.
    const bool whole =
        slice.columns.count == 0 && slice.offset == 0 && count == *elements;
    SafetensorsEntry entry;
    entry.key = absl::StrCat(slice.kind, "/", slice.name);
    if (slice.columns.count > 0) {
      absl::StrAppend(&entry.key, "[", slice.columns.begin, ":",
                      slice.columns.begin + slice.columns.count, "]");
    }
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
    described.set_column_begin(slice.columns.begin);
    described.set_columns(slice.columns.count);
    described.set_file(name);
    described.set_key(entry.key);
    entries.push_back(std::move(entry));
  }
  if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    return FileError(errno, "make", directory);
  }
  RETURN_IF_ERROR(WriteFile(absl::StrCat(directory, "/", name), entries, slices,
                            alive, shard.file));
  return shard;
}

}  // namespace lockstep
