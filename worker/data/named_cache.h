// A cache under its name: the one that is there, or else a new one.
#ifndef LOCKSTEP_WORKER_DATA_NAMED_CACHE_H_
#define LOCKSTEP_WORKER_DATA_NAMED_CACHE_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "worker/data/cache_directory.h"
#include "worker/data/cache_manifest.h"
#include "worker/data/data_root.h"
#include "worker/data/prepared_data.h"
#include "worker/data/progress.h"

namespace lockstep {

struct NamedCache {
  std::string directory;
  // As OpenManifest has checked it.
  CacheManifest manifest;
};

// Writes the cache's files into a directory.
using BuildCache = std::function<absl::StatusOr<CacheManifest>(
    const CacheDirectory& directory, Progress& progress)>;

// The cache options.cache_dir/`name`; `build` makes it where there is none, or
// a broken one. All ranks may call it at once.
absl::StatusOr<NamedCache> OpenOrBuildCache(const DataOptions& options,
                                            const std::string& name,
                                            const DataRoot& root,
                                            const BuildCache& build);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_NAMED_CACHE_H_
