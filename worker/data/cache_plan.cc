#include "worker/data/cache_plan.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "common/files/content_hash.h"
#include "common/status_macros.h"
#include "worker/data/block_reader.h"
#include "worker/data/str_cat.h"
#include "worker/data/tokenizer_files.h"

namespace lockstep {
namespace {

// Raised when the same inputs and settings give another cache.
constexpr int kCacheVersion = 1;

absl::StatusOr<std::string> ReadModel(const DataRoot& root,
                                      const std::string& given) {
  ASSIGN_OR_RETURN(const std::string path, root.Relative(given));
  ASSIGN_OR_RETURN(const OpenedFile opened, root.OpenFile(path));
  const InputFile file{path, root.Display(path), opened.bytes, opened.mtime_ns};
  if (file.bytes > kMostModelBytes) {
    return absl::InvalidArgumentError(
        StrCat("data.tokenizer.path: ", file.display, " has ", file.bytes,
               " bytes, want at most ", kMostModelBytes));
  }
  ASSIGN_OR_RETURN(BlockReader reader,
                   BlockReader::Open(root, file, {0, file.bytes}));
  std::string contents;
  while (true) {
    ASSIGN_OR_RETURN(const std::string_view block, reader.Next());
    if (block.empty()) return contents;
    contents.append(block);
  }
}

absl::StatusOr<CacheManifest::Layout> LayoutOf(const v1::JobSpec& spec,
                                               const Inputs& train) {
  if (train.format == v1::DATA_FORMAT_TOKENS) {
    if (spec.task() == v1::TASK_CLASSIFICATION) {
      return absl::InvalidArgumentError(
          StrCat("data.train: ", train.files.front().display,
                 " holds token ids, which have no labels"));
    }
    if (spec.data().has_tokenizer()) {
      return absl::InvalidArgumentError(
          "data.tokenizer is given, but the data are token ids already");
    }
    return CacheManifest::Layout::kTokenFiles;
  }
  if (spec.data().has_end_token()) {
    return absl::InvalidArgumentError(
        StrCat("data.end_token is a key of tokens, but data.train is ",
               FormatName(train.format)));
  }
  if (spec.task() != v1::TASK_CLASSIFICATION) {
    return CacheManifest::Layout::kLanguageModel;
  }
  if (train.format == v1::DATA_FORMAT_TEXT) {
    return absl::InvalidArgumentError(
        StrCat("data.train: ", train.files.front().display,
               " is text, which has no labels; classification wants jsonl or "
               "csv"));
  }
  return CacheManifest::Layout::kClassification;
}

std::string KeyText(const DataOptions& options, const CachePlan& plan) {
  const v1::JobSpec& spec = options.spec;
  std::string text = StrCat("lockstep token cache ", kCacheVersion, "\nlayout ",
                            static_cast<int>(plan.layout), "\ntrain\n",
                            DescribeInputs(plan.train));
  if (plan.validation.has_value()) {
    text += StrCat("validation\n", DescribeInputs(*plan.validation));
  }
  // With all its digits: the parts differ where they do.
  if (plan.fraction.has_value()) {
    text += absl::StrFormat("fraction %.17g", *plan.fraction);
  }
  if (plan.layout == CacheManifest::Layout::kTokenFiles) {
    return StrCat(text, "\ndtype ", spec.data().train().dtype(), " ",
                  spec.data().validation().dtype(), "\nvocabulary ",
                  spec.model().vocabulary(), "\nend token ",
                  spec.data().has_end_token() ? spec.data().end_token() : -1);
  }
  text += StrCat("\ntokenizer ", spec.data().tokenizer().kind(), " ",
                 spec.data().tokenizer().vocabulary());
  if (plan.model.has_value()) text += StrCat("\nmodel ", HashHex(*plan.model));
  if (plan.layout == CacheManifest::Layout::kClassification) {
    text += StrCat("\nsequence length ", spec.train().sequence_length());
  }
  return text;
}

}  // namespace

absl::StatusOr<SourcePlan> PlanSource(const DataRoot& root,
                                      const v1::DataSource& source,
                                      std::string_view key, v1::Task task) {
  SourcePlan plan;
  ASSIGN_OR_RETURN(plan.inputs, FindInputs(root, source, key));
  plan.fields.text = source.text().empty() ? "text" : source.text();
  if (task == v1::TASK_CLASSIFICATION) {
    plan.fields.label = source.label().empty() ? "label" : source.label();
  }
  return plan;
}

std::string DescribeInputs(const SourcePlan& source) {
  const std::string label = source.fields.label.value_or("");
  std::string text =
      StrCat(FormatName(source.inputs.format), " ", source.fields.text.size(),
             " ", source.fields.text, " ", label.size(), " ", label, "\n");
  for (const InputFile& file : source.inputs.files) {
    text += StrCat(file.display.size(), " ", file.display, " ", file.bytes, " ",
                   file.mtime_ns, "\n");
  }
  return text;
}

absl::StatusOr<CachePlan> PlanCache(const DataOptions& options) {
  const v1::JobSpec& spec = options.spec;
  const v1::DataSpec& data = spec.data();
  ASSIGN_OR_RETURN(DataRoot root, DataRoot::Open(options.data_root));
  CachePlan plan(std::move(root));
  ASSIGN_OR_RETURN(plan.train, PlanSource(plan.root, data.train(), "data.train",
                                          spec.task()));
  ASSIGN_OR_RETURN(plan.layout, LayoutOf(spec, plan.train.inputs));
  if (data.has_validation() && data.validation().has_fraction()) {
    plan.fraction = data.validation().fraction();
  } else if (data.has_validation()) {
    ASSIGN_OR_RETURN(plan.validation,
                     PlanSource(plan.root, data.validation(), "data.validation",
                                spec.task()));
    const v1::DataFormat format = plan.validation->inputs.format;
    if ((format == v1::DATA_FORMAT_TOKENS) !=
        (plan.layout == CacheManifest::Layout::kTokenFiles)) {
      return absl::InvalidArgumentError(
          StrCat("data.validation is ", FormatName(format),
                 ", but data.train is ", FormatName(plan.train.inputs.format),
                 "; token ids and text can't be mixed"));
    }
  }
  const v1::TokenizerSpec& tokenizer = data.tokenizer();
  if (tokenizer.kind() == v1::TOKENIZER_KIND_HUGGINGFACE) {
    return absl::UnimplementedError(
        "data.tokenizer.kind: huggingface is not built yet");
  }
  if (tokenizer.kind() == v1::TOKENIZER_KIND_SENTENCEPIECE &&
      !tokenizer.path().empty()) {
    ASSIGN_OR_RETURN(plan.model, ReadModel(plan.root, tokenizer.path()));
    plan.model_path = tokenizer.path();
  }
  plan.key = HashHex(KeyText(options, plan));
  return plan;
}

}  // namespace lockstep
