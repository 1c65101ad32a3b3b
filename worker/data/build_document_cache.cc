#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/files/file_writer.h"
#include "common/status_macros.h"
#include "worker/data/build_cache.h"
#include "worker/data/byte_tokenizer.h"
#include "worker/data/holdout.h"
#include "worker/data/part_writer.h"
#include "worker/data/sentencepiece_tokenizer.h"
#include "worker/data/str_cat.h"
#include "worker/data/survey.h"
#include "worker/data/tokenizer_files.h"
#include "worker/data/tokenizer_training.h"

namespace lockstep {
namespace {

constexpr char kSentencesName[] = "sentences.txt";

// Only counts bytes.
class CountingVisitor : public DocumentVisitor {
 public:
  explicit CountingVisitor(Progress& progress) : progress_(progress) {}
  absl::Status Begin(const DocumentOrigin&, std::string_view) override {
    return absl::OkStatus();
  }
  absl::Status Text(std::string_view) override { return absl::OkStatus(); }
  absl::Status End() override { return absl::OkStatus(); }
  void Consumed(int64_t bytes) override { progress_.Add(bytes); }

 private:
  Progress& progress_;
};

class DocumentCacheBuilder {
 public:
  DocumentCacheBuilder(const DataOptions& options, const CachePlan& plan,
                       const CacheDirectory& directory, Progress& progress)
      : options_(options),
        plan_(plan),
        directory_(directory),
        progress_(progress) {}

  absl::StatusOr<CacheManifest> Build() {
    RETURN_IF_ERROR(Split());
    RETURN_IF_ERROR(MakeTokenizerAndLabels());
    manifest_.layout = plan_.layout;
    manifest_.vocabulary = tokenizer_->vocabulary();
    manifest_.width = WidthFor(manifest_.vocabulary);
    manifest_.end_token = tokenizer_->end_token();
    RETURN_IF_ERROR(WriteTokenizerFiles());
    RETURN_IF_ERROR(WritePart(kTrainPart, plan_.train, split_.train));
    if (plan_.fraction.has_value()) {
      RETURN_IF_ERROR(
          WritePart(kValidationPart, plan_.train, split_.validation));
    } else if (plan_.validation.has_value()) {
      RETURN_IF_ERROR(
          WritePart(kValidationPart, *plan_.validation, DataPart()));
    }
    return std::move(manifest_);
  }

 private:
  absl::Status Split() {
    if (!plan_.fraction.has_value()) return absl::OkStatus();
    const Inputs& inputs = plan_.train.inputs;
    if (inputs.format == v1::DATA_FORMAT_TEXT && inputs.files.size() == 1) {
      ASSIGN_OR_RETURN(split_,
                       HoldOutLines(plan_.root, inputs, *plan_.fraction));
      return absl::OkStatus();
    }
    progress_.Start("counting", inputs.bytes());
    CountingVisitor counter(progress_);
    ASSIGN_OR_RETURN(
        const int64_t documents,
        CountDocuments(plan_.root, inputs, plan_.train.fields, counter));
    ASSIGN_OR_RETURN(split_, HoldOutDocuments(documents, *plan_.fraction));
    return absl::OkStatus();
  }

  absl::Status MakeTokenizerAndLabels() {
    const v1::TokenizerSpec& spec = options_.spec.data().tokenizer();
    const bool sentencepiece = spec.kind() == v1::TOKENIZER_KIND_SENTENCEPIECE;
    const bool train = sentencepiece && !plan_.model.has_value();
    const bool labels = plan_.layout == CacheManifest::Layout::kClassification;
    // Removed with all in it when it goes out of scope.
    std::unique_ptr<CacheDirectory> scratch;
    std::unique_ptr<SentenceSample> sentences;
    if (train) {
      ASSIGN_OR_RETURN(scratch, CacheDirectory::Create(options_.cache_dir));
      ASSIGN_OR_RETURN(sentences,
                       SentenceSample::Create(scratch->File(kSentencesName),
                                              plan_.train.inputs.bytes()));
    }
    if (train || labels) {
      progress_.Start("reading", plan_.train.inputs.bytes());
      Survey survey(labels ? Survey::Labels::kCollect : Survey::Labels::kIgnore,
                    sentences.get(), progress_);
      RETURN_IF_ERROR(ReadDocuments(plan_.root, plan_.train.inputs,
                                    plan_.train.fields, split_.train, survey));
      labels_ = survey.labels();
    }
    if (!sentencepiece) {
      tokenizer_ = std::make_unique<ByteTokenizer>();
      return absl::OkStatus();
    }
    std::string name = plan_.model_path;
    if (train) {
      RETURN_IF_ERROR(sentences->Finish());
      ASSIGN_OR_RETURN(model_, Train(*scratch));
      name = "the trained tokenizer";
    } else {
      model_ = *plan_.model;
    }
    ASSIGN_OR_RETURN(tokenizer_, SentencePieceTokenizer::Load(*model_, name));
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Train(const CacheDirectory& scratch) {
    progress_.Start("training tokenizer", 1);
    TokenizerTraining training;
    training.sentences_path = scratch.File(kSentencesName);
    training.work_folder = scratch.path();
    training.vocabulary = options_.spec.data().tokenizer().vocabulary();
    training.trainer_path = options_.tokenizer_trainer;
    training.alive = [this] { progress_.Tell(); };
    return TrainTokenizer(training);
  }

  absl::Status WriteTokenizerFiles() {
    RETURN_IF_ERROR(WriteFile(
        kTokenizerKindName,
        TokenizerKindJson(model_.has_value() ? "sentencepiece" : "bytes")));
    if (model_.has_value()) {
      RETURN_IF_ERROR(WriteFile(kTokenizerModelName, *model_));
    }
    if (plan_.layout == CacheManifest::Layout::kClassification) {
      RETURN_IF_ERROR(WriteFile(kLabelsName, LabelsJson(labels_)));
    }
    return absl::OkStatus();
  }

  absl::Status WriteFile(const std::string& name, std::string_view contents) {
    ASSIGN_OR_RETURN(const WrittenFile written,
                     WriteWholeFile(directory_.File(name), contents));
    ASSIGN_OR_RETURN(CacheFile file, directory_.Describe(name, written));
    manifest_.files.push_back(std::move(file));
    return absl::OkStatus();
  }

  absl::Status WritePart(const std::string& part, const SourcePlan& source,
                         const DataPart& range) {
    progress_.Start("tokenizing", source.inputs.bytes());
    PartWriter::Options options;
    options.part = part;
    options.layout = plan_.layout;
    options.labels = labels_;
    options.sequence_length = options_.spec.train().sequence_length();
    ASSIGN_OR_RETURN(
        const auto writer,
        PartWriter::Create(directory_, *tokenizer_, options, progress_));
    RETURN_IF_ERROR(ReadDocuments(plan_.root, source.inputs, source.fields,
                                  range, *writer));
    RETURN_IF_ERROR(writer->Finish(manifest_));
    if (manifest_.parts[part].documents == 0) {
      return absl::InvalidArgumentError(
          StrCat("data.", part, ": ", source.inputs.files.front().display,
                 " holds no rows"));
    }
    return absl::OkStatus();
  }

  const DataOptions& options_;
  const CachePlan& plan_;
  const CacheDirectory& directory_;
  Progress& progress_;
  Holdout split_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<std::string> model_;  // SentencePiece's file
  std::vector<std::string> labels_;
  CacheManifest manifest_;
};

}  // namespace

absl::StatusOr<CacheManifest> BuildDocumentCache(
    const DataOptions& options, const CachePlan& plan,
    const CacheDirectory& directory, Progress& progress) {
  return DocumentCacheBuilder(options, plan, directory, progress).Build();
}

}  // namespace lockstep
