// LanguageDataset: the samples of language modelling, cut from one token stream
// of n + 1 tokens: sample i has the inputs [i T, (i + 1) T) and as target of
// each the token after it. The last sample has the rows that are left.
#ifndef LOCKSTEP_WORKER_DATA_LANGUAGE_DATASET_H_
#define LOCKSTEP_WORKER_DATA_LANGUAGE_DATASET_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/data/dataset.h"
#include "worker/data/mapped_file.h"
#include "worker/data/token_stream.h"

namespace lockstep {

class LanguageDataset : public Dataset {
 public:
  struct Options {
    int64_t sequence_length = 0;  // T
    // Starts a document. Absent: all tokens are one document.
    std::optional<int32_t> end_token;
    // One attention segment a sample, in place of one a document.
    bool attend_across_documents = false;
    int64_t text_bytes = 0;
  };

  // `files` holds the memory that `stream` reads.
  LanguageDataset(std::vector<MappedFile> files, TokenStream stream,
                  Options options);

  int64_t samples() const override;
  int64_t targets() const override;
  int64_t ValidTargets(int64_t sample) const override;
  int64_t text_bytes() const override { return options_.text_bytes; }
  void Append(int64_t sample, int64_t global_sample,
              MicroBatch& batch) const override;

 private:
  const std::vector<MappedFile> files_;
  const TokenStream stream_;
  const Options options_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_LANGUAGE_DATASET_H_
