// Makes the contents of a token cache: of documents (tokenizer, labels, tokens)
// or of token files (which are only looked through).
#ifndef LOCKSTEP_WORKER_DATA_BUILD_CACHE_H_
#define LOCKSTEP_WORKER_DATA_BUILD_CACHE_H_

#include "absl/status/statusor.h"
#include "worker/data/cache_directory.h"
#include "worker/data/cache_manifest.h"
#include "worker/data/cache_plan.h"
#include "worker/data/prepared_data.h"
#include "worker/data/progress.h"

namespace lockstep {

// Text, jsonl and csv: counts and splits the documents, trains the tokenizer
// where asked, gathers the labels, tokenizes.
absl::StatusOr<CacheManifest> BuildDocumentCache(
    const DataOptions& options, const CachePlan& plan,
    const CacheDirectory& directory, Progress& progress);

// `tokens`: checks sizes and ids, and hashes by sample.
absl::StatusOr<CacheManifest> BuildTokenFileCache(const DataOptions& options,
                                                  const CachePlan& plan,
                                                  Progress& progress);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_BUILD_CACHE_H_
