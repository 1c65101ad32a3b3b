// CheckpointReader: any element range of any logical tensor, whichever way it
// was sharded when written.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/file_reader.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/safetensors.h"

namespace lockstep {
namespace {

// Elements [offset, offset + count) at bytes `begin_byte` on of `file`.
struct Extent {
  int64_t offset = 0;
  int64_t count = 0;
  std::string file;  // its name
  uint64_t begin_byte = 0;
};

// Some columns of a tensor.
struct ColumnBlock {
  ColumnRange columns;
  // Ordered by offset; they cover the columns' elements exactly once.
  std::vector<Extent> extents;
};

struct StoredTensor {
  std::vector<int64_t> shape;
  // In order; they cover the columns exactly once.
  std::vector<ColumnBlock> blocks;

  int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  int64_t rows() const {
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
    return rows;
  }
};

using Tensors = std::map<TensorKey, StoredTensor>;

class CheckpointReaderImpl : public CheckpointReader {
 public:
  CheckpointReaderImpl(std::string directory, v1::CheckpointManifest manifest,
                       Tensors tensors)
      : directory_(std::move(directory)),
        manifest_(std::move(manifest)),
        tensors_(std::move(tensors)) {}

  const std::string& directory() const override { return directory_; }
  const v1::CheckpointManifest& manifest() const override { return manifest_; }
  bool Contains(const std::string& name,
                const std::string& kind) const override {
    return tensors_.count({name, kind}) > 0;
  }
  std::vector<int64_t> Shape(const std::string& name,
                             const std::string& kind) const override {
    const auto found = tensors_.find({name, kind});
    CHECK(found != tensors_.end()) << "no " << kind << " of " << name;
    return found->second.shape;
  }
  absl::Status Read(const std::string& name, const std::string& kind,
                    const ColumnRange& columns, int64_t offset,
                    absl::Span<float> out) const override;
  std::vector<std::string> tokenizer_files() const override {
    std::vector<std::string> paths;
    for (const std::string& name : manifest_.tokenizer_files()) {
      paths.push_back(absl::StrCat(directory_, "/", name));
    }
    return paths;
  }

 private:
  // The file read last stays open for the next range.
  struct OpenFile {
    std::string name;
    std::unique_ptr<FileReader> reader;
  };
  // Elements [offset, offset + out.size()) of a block.
  absl::Status ReadBlock(const ColumnBlock& block, int64_t offset,
                         absl::Span<float> out, OpenFile& open) const;

  const std::string directory_;
  const v1::CheckpointManifest manifest_;
  const Tensors tensors_;
};

absl::Status CheckpointReaderImpl::ReadBlock(const ColumnBlock& block,
                                             int64_t offset,
                                             absl::Span<float> out,
                                             OpenFile& open) const {
  const auto wanted = static_cast<int64_t>(out.size());
  // The first extent that ends after `offset`.
  auto extent = std::partition_point(
      block.extents.begin(), block.extents.end(), [&](const Extent& candidate) {
        return candidate.offset + candidate.count <= offset;
      });
  for (int64_t done = 0; done < wanted; ++extent) {
    const int64_t skip = offset + done - extent->offset;
    const int64_t count = std::min(extent->count - skip, wanted - done);
    if (count == 0) continue;
    if (open.name != extent->file) {
      ASSIGN_OR_RETURN(open.reader, FileReader::Open(absl::StrCat(
                                        directory_, "/", extent->file)));
      open.name = extent->file;
    }
    RETURN_IF_ERROR(open.reader->Read(extent->begin_byte + skip * sizeof(float),
                                      out.data() + done,
                                      count * sizeof(float)));
    done += count;
  }
  return absl::OkStatus();
}

absl::Status CheckpointReaderImpl::Read(const std::string& name,
                                        const std::string& kind,
                                        const ColumnRange& columns,
                                        int64_t offset,
                                        absl::Span<float> out) const {
  const auto found = tensors_.find({name, kind});
  if (found == tensors_.end()) {
    return absl::NotFoundError(absl::StrCat(directory_, " has no ", kind,
                                            " of tensor \"", name, "\""));
  }
  const StoredTensor& tensor = found->second;
  const int64_t begin = columns.begin;
  const int64_t width = columns.count > 0 ? columns.count : tensor.columns();
  const auto wanted = static_cast<int64_t>(out.size());
  const int64_t elements = tensor.rows() * width;
  if (begin < 0 || width > tensor.columns() - begin || offset < 0 ||
      offset > elements || wanted > elements - offset) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory_, ": elements ", offset, " + ", wanted, " of columns ", begin,
        " + ", width, " of ", kind, " of tensor \"", name, "\", which has ",
        tensor.rows(), " x ", tensor.columns()));
  }
  OpenFile open;
  for (const ColumnBlock& block : tensor.blocks) {
    const int64_t stored = block.columns.begin;
    const int64_t stored_width = block.columns.count;
    if (stored == begin && stored_width == width) {
      return ReadBlock(block, offset, out, open);
    }
    const int64_t first = std::max(begin, stored);
    const int64_t last = std::min(begin + width, stored + stored_width);
    // Row by row, what of it is wanted and in this block.
    for (int64_t row = offset / width;
         first < last && row * width < offset + wanted; ++row) {
      const int64_t from =
          std::max(first, begin + std::max<int64_t>(0, offset - row * width));
      const int64_t to = std::min(
          last, begin + std::min(width, offset + wanted - row * width));
      if (from >= to) continue;
      RETURN_IF_ERROR(ReadBlock(
          block, row * stored_width + from - stored,
          out.subspan(row * width + from - begin - offset, to - from), open));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFiles(const std::string& directory,
                        const v1::CheckpointManifest& manifest,
                        const std::function<void()>& alive) {
  for (const v1::CheckpointManifest::File& listed : manifest.files()) {
    const std::string path = absl::StrCat(directory, "/", listed.name());
    const absl::StatusOr<std::unique_ptr<FileReader>> file =
        FileReader::Open(path);
    if (absl::IsNotFound(file.status())) {
      return absl::DataLossError(file.status().message());
    }
    RETURN_IF_ERROR(file.status());
    if ((*file)->bytes() != listed.bytes()) {
      return absl::DataLossError(absl::StrCat(path, " has ", (*file)->bytes(),
                                              " bytes, want ", listed.bytes()));
    }
    ASSIGN_OR_RETURN(const std::string hash, (*file)->Hash(alive));
    if (hash != listed.xxh3()) {
      return absl::DataLossError(
          absl::StrCat(path, " has checksum ", hash, ", want ", listed.xxh3()));
    }
  }
  return absl::OkStatus();
}

using Header = std::map<std::string, SafetensorsTensor>;

absl::StatusOr<Header> ReadHeader(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FileReader> file,
                   FileReader::Open(path));
  return ReadSafetensorsHeader(*file);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(
    const std::string& directory, const std::function<void()>& alive) {
  ASSIGN_OR_RETURN(v1::CheckpointManifest manifest, ReadManifest(directory));
  absl::StatusOr<SlicesByTensor> slices = CheckManifest(manifest);
  if (!slices.ok()) {
    return absl::DataLossError(absl::StrCat(directory, "/", kManifestName, ": ",
                                            slices.status().message()));
  }
  RETURN_IF_ERROR(CheckFiles(directory, manifest, alive));

  std::map<std::string, Header> headers;
  Tensors tensors;
  for (const auto& [tensor, parts] : *slices) {
    StoredTensor& stored_tensor = tensors[tensor];
    stored_tensor.shape.assign(parts.front().global_shape().begin(),
                               parts.front().global_shape().end());
    for (const v1::CheckpointManifest::Slice& slice : parts) {
      const std::string path = absl::StrCat(directory, "/", slice.file());
      auto header = headers.find(slice.file());
      if (header == headers.end()) {
        ASSIGN_OR_RETURN(Header parsed, ReadHeader(path));
        header = headers.emplace(slice.file(), std::move(parsed)).first;
      }
      const auto stored = header->second.find(slice.key());
      if (stored == header->second.end()) {
        return absl::DataLossError(
            absl::StrCat(path, " has no tensor \"", slice.key(), "\""));
      }
      if (stored->second.bytes !=
          static_cast<uint64_t>(slice.count()) * sizeof(float)) {
        return absl::DataLossError(absl::StrCat(
            path, ": tensor \"", slice.key(), "\" has ", stored->second.bytes,
            " bytes, want ", slice.count(), " elements of 4"));
      }
      const ColumnRange columns = ColumnsOf(slice);
      if (stored_tensor.blocks.empty() ||
          stored_tensor.blocks.back().columns.begin != columns.begin) {
        stored_tensor.blocks.push_back({columns, {}});
      }
      stored_tensor.blocks.back().extents.push_back(
          {slice.offset(), slice.count(), slice.file(),
           stored->second.begin_byte});
    }
  }
  return std::make_unique<CheckpointReaderImpl>(directory, std::move(manifest),
                                                std::move(tensors));
}

}  // namespace lockstep
