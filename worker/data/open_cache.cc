#include "worker/data/open_cache.h"

#include <utility>
#include <vector>

#include "common/files/content_hash.h"
#include "common/files/file_reader.h"
#include "common/status_macros.h"
#include "worker/data/classification_dataset.h"
#include "worker/data/language_dataset.h"
#include "worker/data/mapped_file.h"
#include "worker/data/sampled_hash.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

constexpr int64_t kMostManifestBytes = 64 << 20;
// Larger files are checked by sample: a start shouldn't read them whole.
constexpr int64_t kMostHashedBytes = 1 << 30;

absl::Status Changed(const std::string& path, std::string_view what) {
  return absl::DataLossError(
      StrCat(path, " is not what the token cache's manifest says: ", what));
}

absl::Status CheckFile(const std::string& directory, const CacheFile& file) {
  const std::string path = StrCat(directory, "/", file.name);
  if (file.name.empty() || file.name.find('/') != std::string::npos) {
    return Changed(path, "bad name");
  }
  const absl::StatusOr<MappedFile> mapped = MappedFile::Open(path);
  if (!mapped.ok()) {
    return Changed(path, std::string(mapped.status().message()));
  }
  if (mapped->bytes() != file.bytes) {
    return Changed(path, StrCat(mapped->bytes(), " bytes, want ", file.bytes));
  }
  const bool same = file.bytes > kMostHashedBytes
                        ? SampledHashHex(mapped->view()) == file.sampled_hash
                        : HashHex(mapped->view()) == file.hash;
  return same ? absl::OkStatus() : Changed(path, "another checksum");
}

absl::StatusOr<MappedFile> MapInput(const CacheInput& input,
                                    const DataRoot& root) {
  ASSIGN_OR_RETURN(const std::string path, root.Relative(input.path));
  ASSIGN_OR_RETURN(const OpenedFile opened, root.OpenFile(path));
  if (opened.bytes != input.bytes) {
    return Changed(input.path,
                   StrCat(opened.bytes, " bytes, want ", input.bytes));
  }
  return MappedFile::Map(opened.fd.get(), input.path, opened.bytes);
}

absl::StatusOr<MappedFile> MapNamed(const std::string& directory,
                                    const CacheManifest& manifest,
                                    const std::string& name) {
  const std::string path = StrCat(directory, "/", name);
  if (manifest.File(name) == nullptr) {
    return Changed(path, "the manifest doesn't name it");
  }
  return MappedFile::Open(path);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenClassification(
    const std::string& directory, const CacheManifest& manifest,
    const std::string& part, int64_t text_bytes,
    const DatasetOptions& options) {
  ClassificationDataset::Files files;
  ASSIGN_OR_RETURN(files.tokens,
                   MapNamed(directory, manifest, part + ".tokens"));
  ASSIGN_OR_RETURN(files.offsets,
                   MapNamed(directory, manifest, part + ".offsets"));
  ASSIGN_OR_RETURN(files.classes,
                   MapNamed(directory, manifest, part + ".classes"));
  return ClassificationDataset::Make(
      std::move(files),
      {manifest.width, manifest.vocabulary, options.classes, text_bytes});
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenLanguageModel(
    std::vector<MappedFile> files, TokenStream::Layout layout,
    const CacheManifest& manifest, int64_t text_bytes,
    const DatasetOptions& options) {
  layout.width = manifest.width;
  layout.vocabulary = manifest.vocabulary;
  LanguageDataset::Options language;
  language.sequence_length = options.sequence_length;
  language.end_token = manifest.end_token;
  language.attend_across_documents = options.attend_across_documents;
  language.text_bytes = text_bytes;
  return std::make_unique<LanguageDataset>(
      std::move(files), TokenStream(std::move(layout)), language);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenTokenFiles(
    const CacheManifest& manifest, const CachePart& part, const DataRoot& root,
    const DatasetOptions& options) {
  const auto width = static_cast<int64_t>(manifest.width);
  std::vector<MappedFile> files;
  TokenStream::Layout layout;
  for (const CacheInput& input : part.inputs) {
    ASSIGN_OR_RETURN(MappedFile file, MapInput(input, root));
    const int64_t tokens = file.bytes() / width;
    if (input.first > tokens || input.count > tokens - input.first) {
      return Changed(input.path, StrCat("tokens ", input.first, " + ",
                                        input.count, " of ", tokens));
    }
    layout.pieces.push_back(
        file.view().substr(static_cast<size_t>(input.first * width),
                           static_cast<size_t>(input.count * width)));
    files.push_back(std::move(file));
  }
  if (manifest.end_token.has_value()) {
    // The stream starts and ends with an end token, ours where the data has
    // none there.
    TokenStream::Layout bare = layout;
    bare.width = manifest.width;
    bare.vocabulary = manifest.vocabulary;
    const TokenStream stored(std::move(bare));
    const int64_t size = stored.size();
    if (size == 0 || stored.At(0) != *manifest.end_token) {
      layout.front = manifest.end_token;
    }
    if (size == 0 || stored.At(size - 1) != *manifest.end_token) {
      layout.back = manifest.end_token;
    }
  }
  return OpenLanguageModel(std::move(files), std::move(layout), manifest,
                           part.text_bytes, options);
}

}  // namespace

absl::StatusOr<CacheManifest> OpenManifest(const std::string& directory,
                                           const DataRoot& root) {
  const std::string path = StrCat(directory, "/", kManifestName);
  const absl::StatusOr<std::string> json =
      ReadWholeFile(path, kMostManifestBytes);
  if (!json.ok()) {
    return absl::DataLossError(StrCat("no token cache at ", directory, ": ",
                                      std::string(json.status().message())));
  }
  ASSIGN_OR_RETURN(CacheManifest manifest, ParseManifest(*json, path));
  for (const CacheFile& file : manifest.files) {
    RETURN_IF_ERROR(CheckFile(directory, file));
  }
  for (const auto& [name, part] : manifest.parts) {
    for (const CacheInput& input : part.inputs) {
      ASSIGN_OR_RETURN(const MappedFile mapped, MapInput(input, root));
      if (SampledHashHex(mapped.view()) != input.sampled_hash) {
        return Changed(input.path, "another checksum");
      }
    }
  }
  return manifest;
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenPart(
    const std::string& directory, const CacheManifest& manifest,
    const std::string& part, const DataRoot& root,
    const DatasetOptions& options) {
  const auto found = manifest.parts.find(part);
  if (found == manifest.parts.end()) {
    return absl::DataLossError(
        StrCat(directory, ": the token cache has no part \"", part, "\""));
  }
  switch (manifest.layout) {
    case CacheManifest::Layout::kClassification:
      return OpenClassification(directory, manifest, part,
                                found->second.text_bytes, options);
    case CacheManifest::Layout::kTokenFiles:
      return OpenTokenFiles(manifest, found->second, root, options);
    case CacheManifest::Layout::kLanguageModel:
      break;
  }
  ASSIGN_OR_RETURN(MappedFile tokens,
                   MapNamed(directory, manifest, part + ".tokens"));
  TokenStream::Layout layout;
  layout.pieces = {tokens.view()};
  std::vector<MappedFile> files;
  files.push_back(std::move(tokens));
  return OpenLanguageModel(std::move(files), std::move(layout), manifest,
                           found->second.text_bytes, options);
}

}  // namespace lockstep
