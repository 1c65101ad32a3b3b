#include "worker/data/csv_reader.h"

#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "worker/data/excerpt.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
// Fields of a record. Each costs a string: a long line of commas must not cost
// the memory of the host.
constexpr size_t kMostFields = 10'000;

// Finds the wanted columns in the header, then visits each record.
class RecordVisitor {
 public:
  RecordVisitor(const std::string& file, const DocumentFields& fields,
                const DataPart& part, int64_t& document,
                DocumentVisitor& visitor)
      : file_(file),
        fields_(fields),
        part_(part),
        document_(document),
        visitor_(visitor) {}

  absl::Status OnRecord(const std::vector<std::string>& record, int64_t line) {
    if (columns_ == 0) return OnHeader(record);
    const DocumentOrigin origin{file_, line};
    if (record.size() != columns_) {
      return absl::InvalidArgumentError(StrCat(origin.Prefix(), record.size(),
                                               " fields, want the header's ",
                                               columns_));
    }
    if (!part_.Contains(document_++)) return absl::OkStatus();
    RETURN_IF_ERROR(visitor_.Begin(
        origin, label_.has_value() ? std::string_view(record[*label_])
                                   : std::string_view()));
    RETURN_IF_ERROR(visitor_.Text(record[text_]));
    return visitor_.End();
  }

  absl::Status Finish() const {
    if (columns_ > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(StrCat(file_, ":1: no header line"));
  }

 private:
  absl::Status OnHeader(const std::vector<std::string>& header) {
    columns_ = header.size();
    ASSIGN_OR_RETURN(text_, Column(header, fields_.text));
    if (fields_.label.has_value()) {
      ASSIGN_OR_RETURN(label_, Column(header, *fields_.label));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Column(const std::vector<std::string>& header,
                                const std::string& name) const {
    std::optional<size_t> found;
    for (size_t i = 0; i < header.size(); ++i) {
      std::string_view column = header[i];
      if (i == 0 && column.starts_with(kByteOrderMark)) {
        column.remove_prefix(kByteOrderMark.size());
      }
      if (column != name) continue;
      if (found.has_value()) {
        return absl::InvalidArgumentError(
            StrCat(file_, ":1: two columns \"", Excerpt(name), "\""));
      }
      found = i;
    }
    if (found.has_value()) return *found;
    return absl::InvalidArgumentError(
        StrCat(file_, ":1: no column \"", Excerpt(name),
               "\"; there are: ", ExcerptOfList(header)));
  }

  const std::string& file_;
  const DocumentFields& fields_;
  const DataPart& part_;
  int64_t& document_;
  DocumentVisitor& visitor_;
  size_t columns_ = 0;
  size_t text_ = 0;
  std::optional<size_t> label_;
};

}  // namespace

CsvParser::CsvParser(std::string_view name, int64_t most_bytes,
                     OnRecord on_record)
    : name_(name), most_bytes_(most_bytes), on_record_(std::move(on_record)) {}

absl::Status CsvParser::Feed(std::string_view block) {
  for (const char c : block) RETURN_IF_ERROR(Step(c));
  return absl::OkStatus();
}

absl::Status CsvParser::Finish() {
  if (state_ == State::kQuoted) {
    return Error(quote_line_, "a quoted field that starts here never ends");
  }
  if (state_ == State::kCarriageReturn) RETURN_IF_ERROR(Step('\n'));
  if (count_ == 0) return absl::OkStatus();
  if (state_ == State::kFieldStart) {
    RETURN_IF_ERROR(StartField());  // after a last comma
  }
  return EndRecord();
}

absl::Status CsvParser::StartField() {
  if (count_ == 0) record_line_ = line_;
  if (count_ == kMostFields) {
    return Error(record_line_,
                 StrCat("the record has more than ", kMostFields, " fields"));
  }
  if (count_ == fields_.size()) fields_.emplace_back();
  fields_[count_++].clear();
  return absl::OkStatus();
}

absl::Status CsvParser::Step(char c) {
  if (c == '\n') ++line_;
  if (++record_bytes_ > most_bytes_) {
    return Error(record_line_,
                 StrCat("the record is longer than ", most_bytes_, " bytes"));
  }
  switch (state_) {
    case State::kFieldStart:
      if (c == '"') {
        RETURN_IF_ERROR(StartField());
        quote_line_ = line_;
        state_ = State::kQuoted;
        return absl::OkStatus();
      }
      return Unquoted(c);
    case State::kUnquoted:
      if (c == '"') {
        return Error(line_, "a quote inside an unquoted field");
      }
      return Unquoted(c);
    case State::kQuoted:
      if (c == '"') {
        state_ = State::kQuoteInQuoted;
      } else {
        Field().push_back(c);
      }
      return absl::OkStatus();
    case State::kQuoteInQuoted:
      if (c == '"') {
        Field().push_back(c);
        state_ = State::kQuoted;
        return absl::OkStatus();
      }
      if (c != ',' && c != '\n' && c != '\r') {
        return Error(line_, "characters after the closing quote of a field");
      }
      return Unquoted(c);
    case State::kCarriageReturn:
      if (c != '\n') {
        return Error(line_, "a carriage return inside an unquoted field");
      }
      return Unquoted(c);
  }
  return absl::OkStatus();
}

// A character outside quotes.
absl::Status CsvParser::Unquoted(char c) {
  const bool at_start = state_ == State::kFieldStart;
  if (c == '\r') {
    if (at_start && count_ > 0) RETURN_IF_ERROR(StartField());
    state_ = State::kCarriageReturn;
    return absl::OkStatus();
  }
  if (c == '\n') {
    // After a carriage return the field is there already. A line without any
    // character is blank.
    if (at_start && count_ > 0) RETURN_IF_ERROR(StartField());
    state_ = State::kFieldStart;
    if (count_ == 0) {
      record_bytes_ = 0;
      return absl::OkStatus();
    }
    return EndRecord();
  }
  if (at_start) RETURN_IF_ERROR(StartField());
  if (c == ',') {
    state_ = State::kFieldStart;
    return absl::OkStatus();
  }
  Field().push_back(c);
  state_ = State::kUnquoted;
  return absl::OkStatus();
}

absl::Status CsvParser::EndRecord() {
  fields_.resize(count_);
  const absl::Status status = on_record_(fields_, record_line_);
  count_ = 0;
  record_bytes_ = 0;
  return status;
}

absl::Status CsvParser::Error(int64_t line, std::string_view what) const {
  return absl::InvalidArgumentError(StrCat(name_, ":", line, ": ", what));
}

absl::Status ReadCsv(BlockReader& reader, const DocumentFields& fields,
                     const DataPart& part, int64_t& document,
                     DocumentVisitor& visitor) {
  const std::string& file = reader.file().display;
  RecordVisitor records(file, fields, part, document, visitor);
  CsvParser parser(
      file, kMostRowBytes,
      [&records](const std::vector<std::string>& record, int64_t line) {
        return records.OnRecord(record, line);
      });
  while (true) {
    ASSIGN_OR_RETURN(const std::string_view block, reader.Next());
    if (block.empty()) break;
    visitor.Consumed(static_cast<int64_t>(block.size()));
    RETURN_IF_ERROR(parser.Feed(block));
  }
  RETURN_IF_ERROR(parser.Finish());
  return records.Finish();
}

}  // namespace lockstep
