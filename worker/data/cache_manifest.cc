#include "worker/data/cache_manifest.h"

#include <exception>
#include <limits>
#include <utility>

#include "common/files/content_hash.h"
#include "nlohmann/json.hpp"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kFormatVersion = 1;
constexpr int64_t kMostVocabulary = std::numeric_limits<int32_t>::max();

std::string LayoutWord(CacheManifest::Layout layout) {
  switch (layout) {
    case CacheManifest::Layout::kLanguageModel:
      return "language_model";
    case CacheManifest::Layout::kClassification:
      return "classification";
    case CacheManifest::Layout::kTokenFiles:
      return "token_files";
  }
  return "";
}

enum class Paths { kWith, kWithout };

Json PartJson(const CachePart& part, Paths paths) {
  Json inputs = Json::array();
  for (const CacheInput& input : part.inputs) {
    Json json;
    if (paths == Paths::kWith) json["path"] = input.path;
    json["bytes"] = input.bytes;
    json["sampled_hash"] = input.sampled_hash;
    json["first"] = input.first;
    json["count"] = input.count;
    inputs.push_back(std::move(json));
  }
  return {{"documents", part.documents},
          {"tokens", part.tokens},
          {"text_bytes", part.text_bytes},
          {"cut_rows", part.cut_rows},
          {"inputs", std::move(inputs)}};
}

Json ContentsJson(const CacheManifest& manifest, Paths paths) {
  Json json;
  json["format_version"] = kFormatVersion;
  json["layout"] = LayoutWord(manifest.layout);
  json["token_bytes"] = static_cast<int>(manifest.width);
  json["vocabulary"] = manifest.vocabulary;
  if (manifest.end_token.has_value()) json["end_token"] = *manifest.end_token;
  Json& parts = json["parts"] = Json::object();
  for (const auto& [name, part] : manifest.parts) {
    parts[name] = PartJson(part, paths);
  }
  Json& files = json["files"] = Json::array();
  for (const CacheFile& file : manifest.files) {
    files.push_back({{"name", file.name},
                     {"bytes", file.bytes},
                     {"hash", file.hash},
                     {"sampled_hash", file.sampled_hash}});
  }
  return json;
}

// Paths of a file system need not be UTF-8.
std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Throws where `json` isn't what ContentsJson makes.
CacheManifest FromJson(const Json& json) {
  const auto count = [](const Json& object, const char* key) {
    const auto value = object.at(key).get<int64_t>();
    if (value < 0) throw std::out_of_range(StrCat(key, " is ", value));
    return value;
  };
  if (count(json, "format_version") != kFormatVersion) {
    throw std::out_of_range("unknown format_version");
  }
  CacheManifest manifest;
  const auto word = json.at("layout").get<std::string>();
  for (const auto layout : {CacheManifest::Layout::kLanguageModel,
                            CacheManifest::Layout::kClassification,
                            CacheManifest::Layout::kTokenFiles}) {
    if (word == LayoutWord(layout)) manifest.layout = layout;
  }
  const int64_t width = count(json, "token_bytes");
  if (word != LayoutWord(manifest.layout) || (width != 2 && width != 4)) {
    throw std::out_of_range("unknown layout or token_bytes");
  }
  manifest.width = static_cast<TokenWidth>(width);
  manifest.vocabulary = count(json, "vocabulary");
  if (manifest.vocabulary < 1 || manifest.vocabulary > kMostVocabulary) {
    throw std::out_of_range(StrCat("vocabulary is ", manifest.vocabulary));
  }
  if (json.contains("end_token")) {
    const int64_t end_token = count(json, "end_token");
    if (end_token >= manifest.vocabulary) {
      throw std::out_of_range(StrCat("end_token is ", end_token));
    }
    manifest.end_token = static_cast<int32_t>(end_token);
  }
  for (const auto& [name, object] : json.at("parts").items()) {
    CachePart& part = manifest.parts[name];
    part.documents = count(object, "documents");
    part.tokens = count(object, "tokens");
    part.text_bytes = count(object, "text_bytes");
    part.cut_rows = count(object, "cut_rows");
    for (const Json& input : object.at("inputs")) {
      part.inputs.push_back({input.at("path").get<std::string>(),
                             count(input, "bytes"),
                             input.at("sampled_hash").get<std::string>(),
                             count(input, "first"), count(input, "count")});
    }
  }
  for (const Json& file : json.at("files")) {
    manifest.files.push_back({file.at("name").get<std::string>(),
                              count(file, "bytes"),
                              file.at("hash").get<std::string>(),
                              file.at("sampled_hash").get<std::string>()});
  }
  return manifest;
}

}  // namespace

std::string CacheManifest::Digest() const {
  return HashHex(Dump(ContentsJson(*this, Paths::kWithout), -1));
}

std::string CacheManifest::ToJson() const {
  Json json = ContentsJson(*this, Paths::kWith);
  json["digest"] = Digest();
  return Dump(json, 2) + "\n";
}

const CacheFile* CacheManifest::File(std::string_view name) const {
  for (const CacheFile& file : files) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

absl::StatusOr<CacheManifest> ParseManifest(const std::string& json,
                                            const std::string& path) {
  try {
    const Json parsed = Json::parse(json);
    CacheManifest manifest = FromJson(parsed);
    if (parsed.at("digest").get<std::string>() != manifest.Digest()) {
      return absl::DataLossError(
          StrCat(path, ": the digest doesn't match the contents"));
    }
    return manifest;
  } catch (const std::exception& error) {
    return absl::DataLossError(
        StrCat(path, ": broken manifest: ", error.what()));
  }
}

}  // namespace lockstep
