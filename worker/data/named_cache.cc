#include "worker/data/named_cache.h"

#include <sys/stat.h>

#include <memory>

#include "common/log.h"
#include "common/status_macros.h"
#include "worker/data/open_cache.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

}  // namespace

absl::StatusOr<NamedCache> OpenOrBuildCache(const DataOptions& options,
                                            const std::string& name,
                                            const DataRoot& root,
                                            const BuildCache& build) {
  NamedCache cache;
  cache.directory = StrCat(options.cache_dir, "/", name);
  absl::StatusOr<CacheManifest> there = OpenManifest(cache.directory, root);
  if (there.ok()) {
    cache.manifest = *std::move(there);
    return cache;
  }
  if (Exists(cache.directory)) {
    LOG(WARNING) << "making a token cache anew: " << there.status();
  }
  ASSIGN_OR_RETURN(const auto directory,
                   CacheDirectory::Create(options.cache_dir));
  Progress progress(options.progress);
  ASSIGN_OR_RETURN(const CacheManifest built, build(*directory, progress));
  ASSIGN_OR_RETURN(
      cache.directory,
      directory->Publish(built, name, [&root](const std::string& path) {
        return OpenManifest(path, root).ok();
      }));
  ASSIGN_OR_RETURN(cache.manifest, OpenManifest(cache.directory, root));
  return cache;
}

}  // namespace lockstep
