#include "worker/data/part_writer.h"

#include <cstring>
#include <utility>

#include "common/status_macros.h"
#include "worker/data/excerpt.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

template <typename T>
void AppendValue(T value, std::string& bytes) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes.append(raw, sizeof(T));
}

template <typename T>
absl::Status WriteValue(T value, FileWriter& file) {
  std::string bytes;
  AppendValue(value, bytes);
  return file.Append(bytes);
}

}  // namespace

PartWriter::PartWriter(const CacheDirectory& directory,
                       const Tokenizer& tokenizer, const Options& options,
                       Progress& progress)
    : directory_(directory),
      tokenizer_(tokenizer),
      options_(options),
      progress_(progress),
      width_(WidthFor(tokenizer.vocabulary())) {
  for (size_t i = 0; i < options.labels.size(); ++i) {
    classes_.emplace(options.labels[i], static_cast<int32_t>(i));
  }
}

absl::StatusOr<std::unique_ptr<PartWriter>> PartWriter::Create(
    const CacheDirectory& directory, const Tokenizer& tokenizer,
    const Options& options, Progress& progress) {
  auto writer = std::unique_ptr<PartWriter>(
      new PartWriter(directory, tokenizer, options, progress));
  ASSIGN_OR_RETURN(
      writer->token_file_,
      FileWriter::Create(directory.File(options.part + ".tokens")));
  if (options.layout == CacheManifest::Layout::kClassification) {
    ASSIGN_OR_RETURN(
        writer->offset_file_,
        FileWriter::Create(directory.File(options.part + ".offsets")));
    ASSIGN_OR_RETURN(
        writer->class_file_,
        FileWriter::Create(directory.File(options.part + ".classes")));
    RETURN_IF_ERROR(WriteValue<uint64_t>(0, *writer->offset_file_));
  } else {
    RETURN_IF_ERROR(writer->Write({tokenizer.end_token()}));
  }
  return writer;
}

absl::Status PartWriter::Begin(const DocumentOrigin& origin,
                               std::string_view label) {
  ++counts_.documents;
  if (class_file_ == nullptr) return absl::OkStatus();
  tokens_.assign(1, tokenizer_.end_token());
  const auto found = classes_.find(AbslView(label));
  if (found == classes_.end()) {
    return absl::InvalidArgumentError(StrCat(
        origin.Prefix(), "the label \"", Excerpt(label),
        "\" is none of the training data's: ", ExcerptOfList(options_.labels)));
  }
  return WriteValue<int32_t>(found->second, *class_file_);
}

absl::Status PartWriter::Text(std::string_view piece) {
  counts_.text_bytes += static_cast<int64_t>(piece.size());
  if (class_file_ == nullptr) tokens_.clear();
  tokenizer_.Encode(piece, tokens_);
  return class_file_ == nullptr ? Write(tokens_) : absl::OkStatus();
}

absl::Status PartWriter::End() {
  return class_file_ == nullptr ? Write({tokenizer_.end_token()}) : WriteRow();
}

absl::Status PartWriter::WriteRow() {
  if (static_cast<int64_t>(tokens_.size()) > options_.sequence_length) {
    tokens_.resize(static_cast<size_t>(options_.sequence_length));
    ++counts_.cut_rows;
  }
  RETURN_IF_ERROR(Write(tokens_));
  return WriteValue(static_cast<uint64_t>(counts_.tokens), *offset_file_);
}

absl::Status PartWriter::Write(const std::vector<int32_t>& tokens) {
  bytes_.clear();
  for (const int32_t token : tokens) {
    if (width_ == TokenWidth::kTwoBytes) {
      AppendValue(static_cast<uint16_t>(token), bytes_);
    } else {
      AppendValue(static_cast<uint32_t>(token), bytes_);
    }
  }
  counts_.tokens += static_cast<int64_t>(tokens.size());
  return token_file_->Append(bytes_);
}

absl::Status PartWriter::Finish(CacheManifest& manifest) {
  const std::pair<const char*, FileWriter*> files[] = {
      {".tokens", token_file_.get()},
      {".offsets", offset_file_.get()},
      {".classes", class_file_.get()}};
  for (const auto& [extension, file] : files) {
    if (file == nullptr) continue;
    const std::string name = options_.part + extension;
    ASSIGN_OR_RETURN(const WrittenFile written, file->Finish());
    ASSIGN_OR_RETURN(CacheFile entry, directory_.Describe(name, written));
    manifest.files.push_back(std::move(entry));
  }
  manifest.parts[options_.part] = counts_;
  return absl::OkStatus();
}

}  // namespace lockstep
