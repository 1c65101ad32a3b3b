// PreparedData: a job's data after tokenizing: both parts, and the files of the
// tokenizer and the labels. Made once in JOB_ROOT/cache by PrepareCache on one
// rank, then opened by all (docs/formats/token_cache.md).
#ifndef LOCKSTEP_WORKER_DATA_PREPARED_DATA_H_
#define LOCKSTEP_WORKER_DATA_PREPARED_DATA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/v1/job.pb.h"
#include "worker/data/dataset.h"
#include "worker/data/tokenizer.h"

namespace lockstep {

struct DataOptions {
  // With defaults filled in.
  v1::JobSpec spec;
  std::string data_root;
  std::string cache_dir;
  // Tells progress: what is done ("tokenizing"), share done. May be empty.
  std::function<void(std::string_view phase, double fraction)> progress;
  // Warnings for the user ("12 of 900 rows cut to 64 tokens").
  std::function<void(std::string_view)> warn;
  // The program lockstep-tokenizer-trainer. Empty: the one beside this program.
  std::string tokenizer_trainer;
};

// Reads, splits, trains the tokenizer where asked, tokenizes and writes the
// cache, unless one of the same inputs (paths, sizes, times, settings) is
// there. Returns its directory. Crash-safe: a cache appears whole or not.
//   INVALID_ARGUMENT: broken input, with file and line; too little data.
//   NOT_FOUND: missing input. RESOURCE_EXHAUSTED: full disk.
absl::StatusOr<std::string> PrepareCache(const DataOptions& options);

class PreparedData {
 public:
  // DATA_LOSS when checksum or size don't match the manifest. `tokens` files
  // are opened beneath `data_root`.
  static absl::StatusOr<std::unique_ptr<PreparedData>> Open(
      const std::string& directory, const v1::JobSpec& spec,
      const std::string& data_root = "/");
  virtual ~PreparedData() = default;

  virtual const Dataset& train() const = 0;
  // Null when the job has no validation data.
  virtual const Dataset* validation() const = 0;
  // Ids that occur or can occur: the least vocabulary of a model.
  virtual int64_t vocabulary() const = 0;
  // Sorted labels of the training part (classification), in class order.
  virtual const std::vector<std::string>& labels() const = 0;
  // Digest taken while tokenizing; equal on all ranks.
  virtual const std::string& digest() const = 0;
  // Files that rebuild the tokenizer and labels (absolute paths), to be kept
  // with checkpoints; none for `tokens` data.
  virtual const std::vector<std::string>& tokenizer_files() const = 0;
};

// Another data set, tokenized with `tokenizer` as it is, for `evaluate --data`.
// Its cache is kept in options.cache_dir; all ranks may call it at once. A null
// `tokenizer` is of a job on `tokens`; then options.spec.model.vocabulary
// bounds the ids.
absl::StatusOr<std::unique_ptr<Dataset>> OpenEvaluationData(
    const DataOptions& options, const v1::DataSource& source,
    const Tokenizer* tokenizer, const std::vector<std::string>& labels);
inline absl::StatusOr<std::unique_ptr<Dataset>> OpenEvaluationData(
    const DataOptions& options, const v1::DataSource& source,
    const Tokenizer& tokenizer, const std::vector<std::string>& labels) {
  return OpenEvaluationData(options, source, &tokenizer, labels);
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_PREPARED_DATA_H_
