#include "worker/data/language_dataset.h"

#include <algorithm>
#include <utility>

#include "common/log.h"

namespace lockstep {

LanguageDataset::LanguageDataset(std::vector<MappedFile> files,
                                 TokenStream stream, Options options)
    : files_(std::move(files)), stream_(std::move(stream)), options_(options) {
  CHECK(options_.sequence_length > 0) << options_.sequence_length;
}

int64_t LanguageDataset::samples() const {
  return (targets() + options_.sequence_length - 1) / options_.sequence_length;
}

int64_t LanguageDataset::targets() const {
  return std::max<int64_t>(stream_.size() - 1, 0);
}

int64_t LanguageDataset::ValidTargets(int64_t sample) const {
  return std::min(options_.sequence_length,
                  targets() - sample * options_.sequence_length);
}

void LanguageDataset::Append(int64_t sample, int64_t global_sample,
                             MicroBatch& batch) const {
  CHECK(sample >= 0 && sample < samples()) << sample << " of " << samples();
  if (batch.segment_bounds.empty()) batch.segment_bounds.push_back(0);
  if (batch.sample_bounds.empty()) batch.sample_bounds.push_back(0);
  const int64_t rows = ValidTargets(sample);
  const auto first = batch.tokens.size();
  // The last token is the last target only.
  stream_.Read(sample * options_.sequence_length, rows + 1, batch.tokens);
  batch.targets.insert(batch.targets.end(),
                       batch.tokens.begin() + static_cast<ptrdiff_t>(first) + 1,
                       batch.tokens.end());
  batch.tokens.pop_back();

  const bool split =
      options_.end_token.has_value() && !options_.attend_across_documents;
  int64_t segment_start = 0;
  const auto end_segment = [&](int64_t at) {
    batch.segment_bounds.push_back(
        static_cast<int32_t>(static_cast<int64_t>(first) + at));
    batch.max_segment_rows =
        std::max(batch.max_segment_rows, at - segment_start);
    segment_start = at;
  };
  for (int64_t i = 0; i < rows; ++i) {
    const int32_t token = batch.tokens[first + static_cast<size_t>(i)];
    if (split && i > 0 && token == *options_.end_token) end_segment(i);
    batch.positions.push_back(static_cast<int32_t>(i - segment_start));
    batch.sample_positions.push_back(static_cast<int32_t>(i));
  }
  end_segment(rows);
  batch.samples.insert(batch.samples.end(), static_cast<size_t>(rows),
                       static_cast<uint32_t>(global_sample));
  batch.sample_bounds.push_back(static_cast<int32_t>(batch.tokens.size()));
}

}  // namespace lockstep
