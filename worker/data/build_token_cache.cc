#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "worker/data/build_cache.h"
#include "worker/data/holdout.h"
#include "worker/data/str_cat.h"
#include "worker/data/token_files.h"

namespace lockstep {

absl::StatusOr<CacheManifest> BuildTokenFileCache(const DataOptions& options,
                                                  const CachePlan& plan,
                                                  Progress& progress) {
  const v1::DataSpec& data = options.spec.data();
  TokenFileOptions files;
  if (options.spec.model().has_vocabulary()) {
    files.vocabulary = options.spec.model().vocabulary();
  }
  files.width = WidthOf(data.train().dtype(), files.vocabulary);
  ASSIGN_OR_RETURN(
      TokenFiles train,
      ScanTokenFiles(plan.root, plan.train.inputs, files, progress));
  CacheManifest manifest;
  manifest.layout = CacheManifest::Layout::kTokenFiles;
  manifest.width = files.width;
  int64_t vocabulary = train.largest_id + 1;
  if (plan.fraction.has_value()) {
    ASSIGN_OR_RETURN(const Holdout split,
                     HoldOutTail(train.part.tokens, *plan.fraction));
    manifest.parts[kValidationPart] =
        SliceTokens(train.part, *split.validation.range());
    train.part = SliceTokens(train.part, *split.train.range());
  } else if (plan.validation.has_value()) {
    if (WidthOf(data.validation().dtype(), files.vocabulary) != files.width) {
      return absl::InvalidArgumentError(
          "data.validation.dtype differs from data.train.dtype");
    }
    ASSIGN_OR_RETURN(
        TokenFiles validation,
        ScanTokenFiles(plan.root, plan.validation->inputs, files, progress));
    vocabulary = std::max(vocabulary, validation.largest_id + 1);
    manifest.parts[kValidationPart] = std::move(validation.part);
  }
  manifest.parts[kTrainPart] = std::move(train.part);
  if (data.has_end_token()) {
    manifest.end_token = static_cast<int32_t>(data.end_token());
    vocabulary = std::max(vocabulary, data.end_token() + 1);
  }
  manifest.vocabulary = vocabulary;
  return manifest;
}

}  // namespace lockstep
