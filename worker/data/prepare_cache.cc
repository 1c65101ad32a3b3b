#include <string>

#include "common/status_macros.h"
#include "worker/data/build_cache.h"
#include "worker/data/cache_directory.h"
#include "worker/data/cache_plan.h"
#include "worker/data/named_cache.h"
#include "worker/data/open_cache.h"
#include "worker/data/prepared_data.h"
#include "worker/data/progress.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

void Warn(const DataOptions& options, const std::string& text) {
  if (options.warn) options.warn(text);
}

// Targets of a part of language model data.
absl::StatusOr<int64_t> Targets(const std::string& directory,
                                const CacheManifest& manifest,
                                const std::string& part, const DataRoot& root) {
  DatasetOptions one_target_each;
  one_target_each.sequence_length = 1;
  ASSIGN_OR_RETURN(const auto dataset,
                   OpenPart(directory, manifest, part, root, one_target_each));
  return dataset->targets();
}

// Whether the data, which are well-formed, are enough for the job.
absl::Status CheckAmounts(const DataOptions& options, const CachePlan& plan,
                          const std::string& directory,
                          const CacheManifest& manifest) {
  const int64_t length = options.spec.train().sequence_length();
  if (manifest.layout == CacheManifest::Layout::kClassification) {
    for (const auto& [name, part] : manifest.parts) {
      if (part.cut_rows == 0) continue;
      Warn(options, StrCat("data.", name, ": ", part.cut_rows, " of ",
                           part.documents, " rows cut to ", length, " tokens"));
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const int64_t train,
                   Targets(directory, manifest, kTrainPart, plan.root));
  if (train < length) {
    return absl::InvalidArgumentError(
        StrCat("train.sequence_length ", length,
               " is longer than the data: data.train has ", train,
               " tokens to predict"));
  }
  if (!manifest.parts.contains(kValidationPart)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t validation,
                   Targets(directory, manifest, kValidationPart, plan.root));
  if (validation < 1) {
    return absl::InvalidArgumentError(
        "data.validation has no token to predict");
  }
  return absl::OkStatus();
}

void WarnOfVocabulary(const DataOptions& options,
                      const CacheManifest& manifest) {
  const v1::TokenizerSpec& tokenizer = options.spec.data().tokenizer();
  if (tokenizer.has_vocabulary() &&
      manifest.vocabulary < tokenizer.vocabulary()) {
    Warn(options, StrCat("data.tokenizer.vocabulary ", tokenizer.vocabulary(),
                         ": the training text gives only ", manifest.vocabulary,
                         " tokens"));
  }
}

}  // namespace

absl::StatusOr<std::string> PrepareCache(const DataOptions& options) {
  ASSIGN_OR_RETURN(const CachePlan plan, PlanCache(options));
  ASSIGN_OR_RETURN(
      const NamedCache cache,
      OpenOrBuildCache(
          options, plan.key, plan.root,
          [&](const CacheDirectory& directory, Progress& progress) {
            return plan.layout == CacheManifest::Layout::kTokenFiles
                       ? BuildTokenFileCache(options, plan, progress)
                       : BuildDocumentCache(options, plan, directory, progress);
          }));
  RETURN_IF_ERROR(CheckAmounts(options, plan, cache.directory, cache.manifest));
  WarnOfVocabulary(options, cache.manifest);
  return cache.directory;
}

}  // namespace lockstep
