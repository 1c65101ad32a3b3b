#include "worker/checkpoint/manifest.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/files/file_reader.h"
#include "common/status_macros.h"
#include "worker/checkpoint/safetensors.h"

namespace lockstep {
namespace {

constexpr uint64_t kMaxManifestBytes = uint64_t{256} << 20;

// A name that stays in its folder and is none of the folder's own.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name != kManifestName && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

std::vector<int64_t> ShapeOf(const v1::CheckpointManifest::Slice& slice) {
  return {slice.global_shape().begin(), slice.global_shape().end()};
}

// `slices` hold the same columns, of `elements` elements, ordered by offset.
absl::Status CheckBlock(
    const std::string& what, int64_t elements,
    absl::Span<const v1::CheckpointManifest::Slice> slices) {
  int64_t next = 0;
  for (const v1::CheckpointManifest::Slice& slice : slices) {
    if (slice.offset() < 0 || slice.count() < 0 ||
        slice.count() > elements - std::min(slice.offset(), elements)) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, " has elements ", slice.offset(), " + ", slice.count(), " in ",
          slice.file(), ", want within ", elements));
    }
    if (slice.offset() > next) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " lacks elements ", next, " to ", slice.offset(),
                       ", before those in ", slice.file()));
    }
    if (slice.offset() < next) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " has elements ", slice.offset(), " to ", next,
                       " twice, again in ", slice.file()));
    }
    next += slice.count();
  }
  if (next != elements) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " lacks elements ", next, " to ", elements));
  }
  return absl::OkStatus();
}

bool SameColumns(const ColumnRange& a, const ColumnRange& b) {
  return a.begin == b.begin && a.count == b.count;
}

// `slices` are of one tensor, ordered by columns, then by offset.
absl::Status CheckCoverage(
    const TensorKey& tensor,
    absl::Span<const v1::CheckpointManifest::Slice> slices) {
  const std::string what =
      absl::StrCat(tensor.second, " of tensor \"", tensor.first, "\"");
  const std::vector<int64_t> shape = ShapeOf(slices.front());
  const std::optional<int64_t> elements = ElementsOf(shape);
  if (!elements.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(what, " has a bad shape"));
  }
  const int64_t all_columns = shape.empty() ? 1 : shape.back();
  for (const v1::CheckpointManifest::Slice& slice : slices) {
    if (ShapeOf(slice) != shape) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " has another shape in ", slice.file()));
    }
  }
  int64_t next_column = 0;
  for (size_t begin = 0; begin < slices.size();) {
    const ColumnRange columns = ColumnsOf(slices[begin]);
    size_t end = begin + 1;
    while (end < slices.size() &&
           SameColumns(ColumnsOf(slices[end]), columns)) {
      ++end;
    }
    if (columns.begin != next_column || columns.count < 0 ||
        columns.count > all_columns - next_column) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, " has columns ", columns.begin, " + ", columns.count, " in ",
          slices[begin].file(), ", want them from ", next_column,
          " on and within ", all_columns));
    }
    RETURN_IF_ERROR(CheckBlock(
        what, all_columns == 0 ? 0 : *elements / all_columns * columns.count,
        slices.subspan(begin, end - begin)));
    next_column += columns.count;
    begin = end;
  }
  if (next_column != all_columns) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " lacks columns ", next_column, " to ", all_columns));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> PrintManifest(
    const v1::CheckpointManifest& manifest) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  if (const auto status =
          google::protobuf::util::MessageToJsonString(manifest, &text, options);
      !status.ok()) {
    return absl::InternalError(
        absl::StrCat("printing a manifest: ", status.ToString()));
  }
  return text;
}

absl::StatusOr<v1::CheckpointManifest> ReadManifest(
    const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kManifestName);
  ASSIGN_OR_RETURN(const std::string text,
                   ReadWholeFile(path, kMaxManifestBytes));
  // Fields of a later minor addition are passed over.
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  v1::CheckpointManifest manifest;
  if (const auto status =
          google::protobuf::util::JsonStringToMessage(text, &manifest, options);
      !status.ok()) {
    return absl::DataLossError(
        absl::StrCat(path, ": ", std::string(status.message())));
  }
  if (manifest.format_version() > kCheckpointFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": format version ", manifest.format_version(),
                     " is newer than ", kCheckpointFormatVersion,
                     ", which this program "
                     "knows"));
  }
  if (manifest.format_version() < 1) {
    return absl::DataLossError(absl::StrCat(path, ": no format version"));
  }
  return manifest;
}

ColumnRange ColumnsOf(const v1::CheckpointManifest::Slice& slice) {
  if (slice.columns() != 0) return {slice.column_begin(), slice.columns()};
  const int dims = slice.global_shape_size();
  return {slice.column_begin(), dims == 0 ? 1 : slice.global_shape(dims - 1)};
}

absl::StatusOr<SlicesByTensor> CheckManifest(
    const v1::CheckpointManifest& manifest) {
  if (manifest.step() < 0 || manifest.data_position() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("step ", manifest.step(), " or data position ",
                     manifest.data_position(), " is negative"));
  }
  std::set<std::string> files;
  for (const v1::CheckpointManifest::File& file : manifest.files()) {
    if (!IsPlainName(file.name())) {
      return absl::InvalidArgumentError(
          absl::StrCat("file name \"", file.name(), "\" is not a plain name"));
    }
    if (!files.insert(file.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("file ", file.name(), " is listed twice"));
    }
  }
  for (const std::string& file : manifest.tokenizer_files()) {
    if (files.count(file) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer file \"", file, "\" is not listed"));
    }
  }
  SlicesByTensor tensors;
  for (const v1::CheckpointManifest::Slice& slice : manifest.slices()) {
    if (files.count(slice.file()) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("file \"", slice.file(), "\" of tensor \"", slice.name(),
                       "\" is not listed"));
    }
    tensors[{slice.name(), slice.kind()}].push_back(slice);
  }
  for (auto& [tensor, slices] : tensors) {
    // Empty slices first, so that they don't hide where the next begins.
    std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
      return std::make_tuple(a.column_begin(), ColumnsOf(a).count, a.offset(),
                             a.count()) <
             std::make_tuple(b.column_begin(), ColumnsOf(b).count, b.offset(),
                             b.count());
    });
    RETURN_IF_ERROR(CheckCoverage(tensor, slices));
  }
  return tensors;
}

}  // namespace lockstep
