// ClassificationDataset: a row a sample: the end token, which stands for the
// start here, then the row's tokens; one attention segment; its class as
// target.
#ifndef LOCKSTEP_WORKER_DATA_CLASSIFICATION_DATASET_H_
#define LOCKSTEP_WORKER_DATA_CLASSIFICATION_DATASET_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/dataset.h"
#include "worker/data/mapped_file.h"
#include "worker/data/token_stream.h"

namespace lockstep {

class ClassificationDataset : public Dataset {
 public:
  struct Files {
    MappedFile tokens;
    // Where each row starts in `tokens`, and after the last one its end: 64-bit
    // little-endian counts of tokens.
    MappedFile offsets;
    // Class of each row: 32-bit little endian.
    MappedFile classes;
  };
  struct Options {
    TokenWidth width = TokenWidth::kTwoBytes;
    int64_t vocabulary = 0;
    int64_t classes = 0;
    int64_t text_bytes = 0;
  };

  // DATA_LOSS where the files don't fit each other.
  static absl::StatusOr<std::unique_ptr<ClassificationDataset>> Make(
      Files files, const Options& options);

  int64_t samples() const override;
  int64_t targets() const override { return samples(); }
  int64_t ValidTargets(int64_t sample) const override { return 1; }
  int64_t text_bytes() const override { return options_.text_bytes; }
  void Append(int64_t sample, int64_t global_sample,
              MicroBatch& batch) const override;

 private:
  ClassificationDataset(Files files, TokenStream stream, Options options)
      : files_(std::move(files)),
        stream_(std::move(stream)),
        options_(options) {}
  int64_t Offset(int64_t index) const;

  const Files files_;
  const TokenStream stream_;
  const Options options_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CLASSIFICATION_DATASET_H_
