// CSV with a header line (RFC 4180): each record a document. Quoted fields may
// hold commas, newlines and doubled quotes; lines end in LF or CRLF; blank
// lines are skipped. A quote inside an unquoted field, characters after a
// closing quote and records of another length than the header are errors.
#ifndef LOCKSTEP_WORKER_DATA_CSV_READER_H_
#define LOCKSTEP_WORKER_DATA_CSV_READER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "worker/data/block_reader.h"
#include "worker/data/document_reader.h"

namespace lockstep {

// Takes a file in blocks and gives its records.
class CsvParser {
 public:
  // Called with the fields of a record and the line that it starts on.
  using OnRecord = std::function<absl::Status(
      const std::vector<std::string>& fields, int64_t line)>;

  // `name` is the file's, for messages; a record longer than `most_bytes`, or
  // of more than 10,000 fields, is an error.
  CsvParser(std::string_view name, int64_t most_bytes, OnRecord on_record);
  absl::Status Feed(std::string_view block);
  // After the last block: the last record need not end in a newline.
  absl::Status Finish();

 private:
  enum class State : uint8_t {
    kFieldStart,
    kUnquoted,
    kQuoted,
    kQuoteInQuoted,  // the end of the field, or the first of two
    kCarriageReturn,
  };
  absl::Status Step(char c);
  absl::Status Unquoted(char c);
  std::string& Field() { return fields_[count_ - 1]; }
  absl::Status StartField();
  absl::Status EndRecord();
  absl::Status Error(int64_t line, std::string_view what) const;

  const std::string name_;
  const int64_t most_bytes_;
  const OnRecord on_record_;
  State state_ = State::kFieldStart;
  // The first count_ are the record's so far; strings are used again.
  std::vector<std::string> fields_;
  size_t count_ = 0;
  int64_t line_ = 1;
  int64_t record_line_ = 1;
  int64_t quote_line_ = 1;
  int64_t record_bytes_ = 0;
};

// As ReadJsonl.
absl::Status ReadCsv(BlockReader& reader, const DocumentFields& fields,
                     const DataPart& part, int64_t& document,
                     DocumentVisitor& visitor);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CSV_READER_H_
