#include "worker/data/prepared_data.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "common/files/file_error.h"
#include "common/status_macros.h"
#include "worker/data/open_cache.h"
#include "worker/data/str_cat.h"
#include "worker/data/tokenizer_files.h"

namespace lockstep {
namespace {

class OpenedData : public PreparedData {
 public:
  static absl::StatusOr<std::unique_ptr<PreparedData>> Make(
      const std::string& directory, const v1::JobSpec& spec,
      const DataRoot& root) {
    ASSIGN_OR_RETURN(const CacheManifest manifest,
                     OpenManifest(directory, root));
    auto data = std::unique_ptr<OpenedData>(new OpenedData());
    data->digest_ = manifest.Digest();
    data->vocabulary_ = manifest.vocabulary;
    for (const std::string name :
         {kTokenizerKindName, kTokenizerModelName, kLabelsName}) {
      if (manifest.File(name) == nullptr) continue;
      data->tokenizer_files_.push_back(StrCat(directory, "/", name));
    }
    if (!data->tokenizer_files_.empty()) {
      ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                       LoadTokenizer(data->tokenizer_files_));
      ASSIGN_OR_RETURN(data->labels_, LoadLabels(data->tokenizer_files_));
      if (tokenizer->vocabulary() != manifest.vocabulary) {
        return absl::DataLossError(StrCat(directory, ": a tokenizer of ",
                                          tokenizer->vocabulary(),
                                          " ids, want ", manifest.vocabulary));
      }
    }
    DatasetOptions options;
    options.sequence_length = spec.train().sequence_length();
    options.attend_across_documents = spec.data().attend_across_documents();
    options.classes = static_cast<int64_t>(data->labels_.size());
    ASSIGN_OR_RETURN(data->train_,
                     OpenPart(directory, manifest, kTrainPart, root, options));
    if (manifest.parts.contains(kValidationPart)) {
      ASSIGN_OR_RETURN(
          data->validation_,
          OpenPart(directory, manifest, kValidationPart, root, options));
    }
    return data;
  }

  const Dataset& train() const override { return *train_; }
  const Dataset* validation() const override { return validation_.get(); }
  int64_t vocabulary() const override { return vocabulary_; }
  const std::vector<std::string>& labels() const override { return labels_; }
  const std::string& digest() const override { return digest_; }
  const std::vector<std::string>& tokenizer_files() const override {
    return tokenizer_files_;
  }

 private:
  OpenedData() = default;

  std::unique_ptr<Dataset> train_;
  std::unique_ptr<Dataset> validation_;
  int64_t vocabulary_ = 0;
  std::vector<std::string> labels_;
  std::string digest_;
  std::vector<std::string> tokenizer_files_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PreparedData>> PreparedData::Open(
    const std::string& directory, const v1::JobSpec& spec,
    const std::string& data_root) {
  ASSIGN_OR_RETURN(const DataRoot root, DataRoot::Open(data_root));
  std::error_code error;
  const std::filesystem::path absolute =
      std::filesystem::absolute(directory, error);
  if (error) return FileError(error.value(), "resolve", directory);
  return OpenedData::Make(absolute, spec, root);
}

}  // namespace lockstep
