#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/files/content_hash.h"
#include "common/status_macros.h"
#include "worker/data/cache_directory.h"
#include "worker/data/cache_plan.h"
#include "worker/data/document_reader.h"
#include "worker/data/named_cache.h"
#include "worker/data/open_cache.h"
#include "worker/data/part_writer.h"
#include "worker/data/prepared_data.h"
#include "worker/data/progress.h"
#include "worker/data/str_cat.h"
#include "worker/data/token_files.h"

namespace lockstep {
namespace {

// What two tokenizers share only if they encode alike: the bytes of all ids.
absl::StatusOr<std::string> Fingerprint(const Tokenizer& tokenizer) {
  std::string text = StrCat(tokenizer.end_token(), "\n");
  for (int64_t id = 0; id < tokenizer.vocabulary(); ++id) {
    ASSIGN_OR_RETURN(const std::string bytes,
                     tokenizer.DecodeOne(static_cast<int32_t>(id)));
    text += StrCat(bytes.size(), " ", bytes);
  }
  return HashHex(text);
}

class EvaluationCache {
 public:
  EvaluationCache(const DataOptions& options, const DataRoot& root,
                  const SourcePlan& source, const Tokenizer* tokenizer,
                  const std::vector<std::string>& labels)
      : options_(options),
        root_(root),
        source_(source),
        tokenizer_(tokenizer),
        labels_(labels) {}

  absl::StatusOr<std::unique_ptr<Dataset>> Open() {
    DatasetOptions dataset;
    dataset.sequence_length = options_.spec.train().sequence_length();
    dataset.attend_across_documents =
        options_.spec.data().attend_across_documents();
    dataset.classes = static_cast<int64_t>(labels_.size());
    ASSIGN_OR_RETURN(const std::string key, Key());
    ASSIGN_OR_RETURN(
        NamedCache cache,
        OpenOrBuildCache(
            options_, key, root_,
            [this](const CacheDirectory& directory, Progress& progress) {
              return tokenizer_ == nullptr ? ScanTokens(progress)
                                           : Tokenize(directory, progress);
            }));
    Warn(cache.manifest.parts[kValidationPart]);
    ASSIGN_OR_RETURN(std::unique_ptr<Dataset> opened,
                     OpenPart(cache.directory, cache.manifest, kValidationPart,
                              root_, dataset));
    if (opened->targets() < 1) {
      return absl::InvalidArgumentError(StrCat(
          source_.inputs.files.front().display, " has nothing to predict"));
    }
    return opened;
  }

 private:
  bool classification() const {
    return options_.spec.task() == v1::TASK_CLASSIFICATION;
  }

  absl::StatusOr<std::string> Key() const {
    std::string text = StrCat(
        "lockstep evaluation cache 1\n", DescribeInputs(source_), "length ",
        classification() ? options_.spec.train().sequence_length() : 0, "\n");
    if (tokenizer_ != nullptr) {
      ASSIGN_OR_RETURN(const std::string print, Fingerprint(*tokenizer_));
      text += StrCat("tokenizer ", print, "\n");
    } else {
      text += StrCat("vocabulary ", options_.spec.model().vocabulary(),
                     " end token ", options_.spec.data().end_token(), "\n");
    }
    for (const std::string& label : labels_) {
      text += StrCat("label ", label.size(), " ", label, "\n");
    }
    return HashHex(text);
  }

  absl::StatusOr<CacheManifest> Tokenize(const CacheDirectory& directory,
                                         Progress& progress) const {
    CacheManifest manifest;
    manifest.layout = classification() ? CacheManifest::Layout::kClassification
                                       : CacheManifest::Layout::kLanguageModel;
    manifest.vocabulary = tokenizer_->vocabulary();
    manifest.width = WidthFor(manifest.vocabulary);
    manifest.end_token = tokenizer_->end_token();
    progress.Start("tokenizing", source_.inputs.bytes());
    PartWriter::Options options;
    options.part = kValidationPart;
    options.layout = manifest.layout;
    options.labels = labels_;
    options.sequence_length = options_.spec.train().sequence_length();
    ASSIGN_OR_RETURN(
        const auto writer,
        PartWriter::Create(directory, *tokenizer_, options, progress));
    RETURN_IF_ERROR(ReadDocuments(root_, source_.inputs, source_.fields,
                                  DataPart(), *writer));
    RETURN_IF_ERROR(writer->Finish(manifest));
    return manifest;
  }

  absl::StatusOr<CacheManifest> ScanTokens(Progress& progress) const {
    const v1::JobSpec& spec = options_.spec;
    TokenFileOptions options;
    if (!spec.model().has_vocabulary()) {
      return absl::InvalidArgumentError(
          "evaluation on token ids needs model.vocabulary");
    }
    options.vocabulary = spec.model().vocabulary();
    options.width =
        WidthOf(spec.action().evaluate().data().dtype(), options.vocabulary);
    ASSIGN_OR_RETURN(TokenFiles files,
                     ScanTokenFiles(root_, source_.inputs, options, progress));
    CacheManifest manifest;
    manifest.layout = CacheManifest::Layout::kTokenFiles;
    manifest.width = options.width;
    manifest.vocabulary = *options.vocabulary;
    if (spec.data().has_end_token()) {
      manifest.end_token = static_cast<int32_t>(spec.data().end_token());
    }
    manifest.parts[kValidationPart] = std::move(files.part);
    return manifest;
  }

  void Warn(const CachePart& part) const {
    if (part.cut_rows == 0 || !options_.warn) return;
    options_.warn(StrCat(part.cut_rows, " of ", part.documents, " rows cut to ",
                         options_.spec.train().sequence_length(), " tokens"));
  }

  const DataOptions& options_;
  const DataRoot& root_;
  const SourcePlan& source_;
  const Tokenizer* const tokenizer_;
  const std::vector<std::string>& labels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenEvaluationData(
    const DataOptions& options, const v1::DataSource& source,
    const Tokenizer* tokenizer, const std::vector<std::string>& labels) {
  ASSIGN_OR_RETURN(const DataRoot root, DataRoot::Open(options.data_root));
  ASSIGN_OR_RETURN(const SourcePlan plan,
                   PlanSource(root, source, "data", options.spec.task()));
  const bool tokens = plan.inputs.format == v1::DATA_FORMAT_TOKENS;
  if (tokens != (tokenizer == nullptr)) {
    return absl::InvalidArgumentError(
        StrCat("data is ", FormatName(plan.inputs.format),
               ", but the job was trained on ", tokens ? "text" : "token ids"));
  }
  if (options.spec.task() == v1::TASK_CLASSIFICATION &&
      plan.inputs.format == v1::DATA_FORMAT_TEXT) {
    return absl::InvalidArgumentError(
        "data is text, which has no labels; classification wants jsonl or csv");
  }
  return EvaluationCache(options, root, plan, tokenizer, labels).Open();
}

}  // namespace lockstep
