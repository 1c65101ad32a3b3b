#include "worker/data/tokenizer_files.h"

#include <exception>
#include <optional>

#include "common/files/file_reader.h"
#include "common/status_macros.h"
#include "nlohmann/json.hpp"
#include "worker/data/byte_tokenizer.h"
#include "worker/data/sentencepiece_tokenizer.h"
#include "worker/data/str_cat.h"
#include "worker/data/tokenizer.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kFormatVersion = 1;
constexpr int64_t kMostJsonBytes = 64 << 20;

// Contents of the file of that name, and its path; nothing where none has it.
struct NamedFile {
  std::string path;
  std::string contents;
};
absl::StatusOr<std::optional<NamedFile>> Find(
    const std::vector<std::string>& files, const std::string& name,
    int64_t most_bytes) {
  for (const std::string& path : files) {
    if (path != name && !path.ends_with("/" + name)) continue;
    ASSIGN_OR_RETURN(std::string contents, ReadWholeFile(path, most_bytes));
    return NamedFile{path, std::move(contents)};
  }
  return std::nullopt;
}

absl::StatusOr<std::string> ReadKind(const NamedFile& file) {
  try {
    const Json json = Json::parse(file.contents);
    if (json.at("format_version").get<int64_t>() == kFormatVersion) {
      return json.at("kind").get<std::string>();
    }
  } catch (const std::exception&) {
  }
  return absl::DataLossError(
      StrCat(file.path, " doesn't say which tokenizer it is of"));
}

}  // namespace

std::string TokenizerKindJson(const std::string& kind) {
  const Json json = {{"format_version", kFormatVersion}, {"kind", kind}};
  return json.dump(2) + "\n";
}

std::string LabelsJson(absl::Span<const std::string> labels) {
  Json json = Json::array();
  for (const std::string& label : labels) json.push_back(label);
  // Labels of csv need not be UTF-8; ours were checked to be.
  return json.dump(2) + "\n";
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(
    const std::vector<std::string>& files) {
  ASSIGN_OR_RETURN(const std::optional<NamedFile> kind_file,
                   Find(files, kTokenizerKindName, kMostJsonBytes));
  if (!kind_file.has_value()) {
    return absl::NotFoundError(
        StrCat("no ", kTokenizerKindName, ": there is no tokenizer"));
  }
  ASSIGN_OR_RETURN(const std::string kind, ReadKind(*kind_file));
  if (kind == "bytes") return std::make_unique<ByteTokenizer>();
  if (kind != "sentencepiece") {
    return absl::DataLossError(
        StrCat(kind_file->path, ": unknown kind \"", kind, "\""));
  }
  ASSIGN_OR_RETURN(const std::optional<NamedFile> model,
                   Find(files, kTokenizerModelName, kMostModelBytes));
  if (!model.has_value()) {
    return absl::NotFoundError(
        StrCat(kind_file->path, " wants a ", kTokenizerModelName));
  }
  return SentencePieceTokenizer::Load(model->contents, model->path);
}

absl::StatusOr<std::vector<std::string>> LoadLabels(
    const std::vector<std::string>& files) {
  ASSIGN_OR_RETURN(const std::optional<NamedFile> file,
                   Find(files, kLabelsName, kMostJsonBytes));
  if (!file.has_value()) return std::vector<std::string>();
  try {
    return Json::parse(file->contents).get<std::vector<std::string>>();
  } catch (const std::exception&) {
    return absl::DataLossError(StrCat(file->path, " is not a list of labels"));
  }
}

}  // namespace lockstep
