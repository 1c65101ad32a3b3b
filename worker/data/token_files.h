// Files of token ids, used in place: their check and what a manifest keeps.
#ifndef LOCKSTEP_WORKER_DATA_TOKEN_FILES_H_
#define LOCKSTEP_WORKER_DATA_TOKEN_FILES_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "lockstep/v1/job.pb.h"
#include "worker/data/cache_manifest.h"
#include "worker/data/holdout.h"
#include "worker/data/input_files.h"
#include "worker/data/progress.h"
#include "worker/data/token_stream.h"

namespace lockstep {

struct TokenFileOptions {
  TokenWidth width = TokenWidth::kTwoBytes;
  // Ids must be below it. Absent: any that an int32 holds.
  std::optional<int64_t> vocabulary;
};

struct TokenFiles {
  CachePart part;
  int64_t largest_id = 0;
};

// Where no dtype is given: two bytes up to 65,536 ids.
TokenWidth WidthOf(v1::TokenDType dtype, std::optional<int64_t> vocabulary);

// Looks at every id. INVALID_ARGUMENT: a size that isn't a whole number of ids,
// or an id outside the vocabulary, with file and index.
absl::StatusOr<TokenFiles> ScanTokenFiles(const DataRoot& root,
                                          const Inputs& inputs,
                                          const TokenFileOptions& options,
                                          Progress& progress);

// The tokens [first, last) of a part, counted over its inputs.
CachePart SliceTokens(const CachePart& part, ItemRange range);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_TOKEN_FILES_H_
