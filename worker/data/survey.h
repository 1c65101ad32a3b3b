// Survey: one pass over the training part before it is tokenized, for what must
// be known by then: the labels, and the sentences to train a tokenizer on.
#ifndef LOCKSTEP_WORKER_DATA_SURVEY_H_
#define LOCKSTEP_WORKER_DATA_SURVEY_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "worker/data/document_reader.h"
#include "worker/data/progress.h"
#include "worker/data/tokenizer_training.h"

namespace lockstep {

// Hand it to ReadDocuments.
class Survey : public DocumentVisitor {
 public:
  enum class Labels : uint8_t { kIgnore, kCollect };

  // `sentences` may be null; it and `progress` must outlive the survey.
  Survey(Labels labels, SentenceSample* sentences, Progress& progress)
      : collect_labels_(labels == Labels::kCollect),
        sentences_(sentences),
        progress_(progress) {}

  absl::Status Begin(const DocumentOrigin& origin,
                     std::string_view label) override;
  absl::Status Text(std::string_view piece) override;
  absl::Status End() override;
  void Consumed(int64_t bytes) override { progress_.Add(bytes); }

  // Sorted.
  std::vector<std::string> labels() const {
    return {labels_.begin(), labels_.end()};
  }

 private:
  const bool collect_labels_;
  SentenceSample* const sentences_;
  Progress& progress_;
  std::set<std::string, std::less<>> labels_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_SURVEY_H_
