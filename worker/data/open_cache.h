// Opening of a token cache: checks the manifest and every file against it, then
// maps them.
#ifndef LOCKSTEP_WORKER_DATA_OPEN_CACHE_H_
#define LOCKSTEP_WORKER_DATA_OPEN_CACHE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/data/cache_manifest.h"
#include "worker/data/data_root.h"
#include "worker/data/dataset.h"

namespace lockstep {

// DATA_LOSS where the manifest is broken, a file is missing, or size or hash of
// a file are not the manifest's. Files above 1 GiB, and `tokens` files, are
// checked by their sampled hash.
absl::StatusOr<CacheManifest> OpenManifest(const std::string& directory,
                                           const DataRoot& root);

struct DatasetOptions {
  int64_t sequence_length = 0;
  bool attend_across_documents = false;
  // Labels of the training part (classification).
  int64_t classes = 0;
};

// A part of a cache that OpenManifest has checked.
absl::StatusOr<std::unique_ptr<Dataset>> OpenPart(
    const std::string& directory, const CacheManifest& manifest,
    const std::string& part, const DataRoot& root,
    const DatasetOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_OPEN_CACHE_H_
