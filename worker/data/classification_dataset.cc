#include "worker/data/classification_dataset.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/log.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

template <typename T>
T ValueAt(const MappedFile& file, int64_t index) {
  T value;
  std::memcpy(&value, file.view().data() + index * sizeof(T), sizeof(T));
  return value;
}

absl::Status Mismatch(std::string_view what) {
  return absl::DataLossError(StrCat("classification cache: ", what));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClassificationDataset>>
ClassificationDataset::Make(Files files, const Options& options) {
  TokenStream::Layout layout;
  layout.width = options.width;
  layout.pieces = {files.tokens.view()};
  layout.vocabulary = options.vocabulary;
  TokenStream stream(std::move(layout));
  const int64_t rows =
      files.classes.bytes() / static_cast<int64_t>(sizeof(int32_t));
  if (files.classes.bytes() != rows * 4 ||
      files.offsets.bytes() != (rows + 1) * 8) {
    return Mismatch(StrCat(files.classes.bytes(), " bytes of classes and ",
                           files.offsets.bytes(), " of offsets"));
  }
  int64_t last = 0;
  for (int64_t row = 0; row <= rows; ++row) {
    const auto offset = ValueAt<uint64_t>(files.offsets, row);
    const int64_t least = row == 0 ? 0 : last + 1;  // no row is empty
    const int64_t most = row == 0 ? 0 : stream.size();
    if (offset > static_cast<uint64_t>(most) ||
        static_cast<int64_t>(offset) < least) {
      return Mismatch(StrCat("offset ", offset, " of row ", row));
    }
    last = static_cast<int64_t>(offset);
  }
  if (last != stream.size()) {
    return Mismatch(StrCat("rows end at ", last, " of ", stream.size()));
  }
  for (int64_t row = 0; row < rows; ++row) {
    const auto label = ValueAt<int32_t>(files.classes, row);
    if (label < 0 || label >= options.classes) {
      return Mismatch(StrCat("class ", label, " of row ", row));
    }
  }
  return std::unique_ptr<ClassificationDataset>(
      new ClassificationDataset(std::move(files), std::move(stream), options));
}

int64_t ClassificationDataset::samples() const {
  return files_.classes.bytes() / static_cast<int64_t>(sizeof(int32_t));
}

// Bounded, so that a file that changes under us can't lead outside.
int64_t ClassificationDataset::Offset(int64_t index) const {
  const auto offset = ValueAt<uint64_t>(files_.offsets, index);
  return static_cast<int64_t>(
      std::min(offset, static_cast<uint64_t>(stream_.size())));
}

void ClassificationDataset::Append(int64_t sample, int64_t global_sample,
                                   MicroBatch& batch) const {
  CHECK(sample >= 0 && sample < samples()) << sample << " of " << samples();
  if (batch.segment_bounds.empty()) batch.segment_bounds.push_back(0);
  if (batch.sample_bounds.empty()) batch.sample_bounds.push_back(0);
  const int64_t first = Offset(sample);
  const int64_t rows = std::max<int64_t>(Offset(sample + 1) - first, 0);
  stream_.Read(first, rows, batch.tokens);
  for (int64_t i = 0; i < rows; ++i) {
    batch.positions.push_back(static_cast<int32_t>(i));
    batch.sample_positions.push_back(static_cast<int32_t>(i));
  }
  batch.samples.insert(batch.samples.end(), static_cast<size_t>(rows),
                       static_cast<uint32_t>(global_sample));
  batch.targets.push_back(
      std::clamp<int32_t>(ValueAt<int32_t>(files_.classes, sample), 0,
                          static_cast<int32_t>(options_.classes - 1)));
  const auto end = static_cast<int32_t>(batch.tokens.size());
  batch.segment_bounds.push_back(end);
  batch.sample_bounds.push_back(end);
  batch.max_segment_rows = std::max(batch.max_segment_rows, rows);
}

}  // namespace lockstep
