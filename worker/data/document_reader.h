// Reads the documents of text, jsonl and csv files one after another, in
// blocks: files larger than memory work.
//
// Everything read is hostile until parsed. Errors: INVALID_ARGUMENT
// "FILE:LINE: ..." for broken rows; FAILED_PRECONDITION where a file changes
// while it is read.
#ifndef LOCKSTEP_WORKER_DATA_DOCUMENT_READER_H_
#define LOCKSTEP_WORKER_DATA_DOCUMENT_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "worker/data/data_root.h"
#include "worker/data/holdout.h"
#include "worker/data/input_files.h"

namespace lockstep {

// A row may have so many bytes: it is held in memory whole.
inline constexpr int64_t kMostRowBytes = 64 << 20;

// Where a document starts.
struct DocumentOrigin {
  std::string_view file;
  int64_t line = 1;
  // "FILE:LINE: ", the start of a message about it.
  std::string Prefix() const;
};

// Columns (csv) or keys (jsonl) that are read.
struct DocumentFields {
  std::string text;
  // Absent: no label is read.
  std::optional<std::string> label;
};

// Told of each document: Begin, any number of Text, End. An error ends the
// reading. Views live until the call returns.
class DocumentVisitor {
 public:
  virtual ~DocumentVisitor() = default;
  // `label` is empty where none is read.
  virtual absl::Status Begin(const DocumentOrigin& origin,
                             std::string_view label) = 0;
  // A row comes whole; of a text file, each but the last piece ends in a
  // newline where lines are of moderate length, else between two characters.
  virtual absl::Status Text(std::string_view piece) = 0;
  virtual absl::Status End() = 0;
  // Bytes of the files read since the last call, for progress.
  virtual void Consumed(int64_t bytes) = 0;
};

// Visits the documents of `part`.
absl::Status ReadDocuments(const DataRoot& root, const Inputs& inputs,
                           const DocumentFields& fields, const DataPart& part,
                           DocumentVisitor& visitor);

// Number of documents in all, parsing no more than that takes; only the
// visitor's Consumed is called.
absl::StatusOr<int64_t> CountDocuments(const DataRoot& root,
                                       const Inputs& inputs,
                                       const DocumentFields& fields,
                                       DocumentVisitor& progress);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_DOCUMENT_READER_H_
