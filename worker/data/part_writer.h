// Tokenizes the documents of one part into the files of a token cache.
#ifndef LOCKSTEP_WORKER_DATA_PART_WRITER_H_
#define LOCKSTEP_WORKER_DATA_PART_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_writer.h"
#include "worker/data/cache_directory.h"
#include "worker/data/cache_manifest.h"
#include "worker/data/document_reader.h"
#include "worker/data/progress.h"
#include "worker/data/tokenizer.h"

namespace lockstep {

// Hand it to ReadDocuments, then call Finish.
class PartWriter : public DocumentVisitor {
 public:
  struct Options {
    // PART.tokens and so on.
    std::string part;
    CacheManifest::Layout layout = CacheManifest::Layout::kLanguageModel;
    // Classification: classes in order, and most tokens of a row.
    std::vector<std::string> labels;
    int64_t sequence_length = 0;
  };

  // `directory`, `tokenizer` and `progress` must outlive it.
  static absl::StatusOr<std::unique_ptr<PartWriter>> Create(
      const CacheDirectory& directory, const Tokenizer& tokenizer,
      const Options& options, Progress& progress);

  absl::Status Begin(const DocumentOrigin& origin,
                     std::string_view label) override;
  absl::Status Text(std::string_view piece) override;
  absl::Status End() override;
  void Consumed(int64_t bytes) override { progress_.Add(bytes); }

  // Adds the part and its files to `manifest`.
  absl::Status Finish(CacheManifest& manifest);

 private:
  PartWriter(const CacheDirectory& directory, const Tokenizer& tokenizer,
             const Options& options, Progress& progress);
  absl::Status Write(const std::vector<int32_t>& tokens);
  absl::Status WriteRow();

  const CacheDirectory& directory_;
  const Tokenizer& tokenizer_;
  const Options options_;
  Progress& progress_;
  const TokenWidth width_;
  absl::flat_hash_map<std::string, int32_t> classes_;
  std::unique_ptr<FileWriter> token_file_;
  // Classification only.
  std::unique_ptr<FileWriter> offset_file_;
  std::unique_ptr<FileWriter> class_file_;

  CachePart counts_;
  std::vector<int32_t> tokens_;  // of this piece or row
  std::string bytes_;            // as they are stored
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_PART_WRITER_H_
