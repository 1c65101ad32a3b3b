#include "worker/data/jsonl_reader.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/status_macros.h"
#include "nlohmann/json.hpp"
#include "worker/data/excerpt.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

// Takes the values of two keys of the outermost object and passes over all
// else, without building a tree.
class RowHandler : public nlohmann::json_sax<Json> {
 public:
  explicit RowHandler(const DocumentFields& fields) : fields_(fields) {}

  std::optional<std::string> text;
  std::optional<std::string> label;
  // What is wrong, if anything.
  std::string error;

  bool null() override { return Other("null"); }
  bool boolean(bool value) override {
    return Scalar(value ? "true" : "false", "a boolean");
  }
  bool number_integer(number_integer_t value) override {
    return Scalar(StrCat(value), "a number");
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Scalar(StrCat(value), "a number");
  }
  bool number_float(number_float_t, const string_t& digits) override {
    return Scalar(digits, "a number");
  }
  bool string(string_t& value) override {
    if (depth_ == 0) return Other("a string");
    if (depth_ > 1) return true;
    if (key_ == fields_.text) text = value;
    if (fields_.label.has_value() && key_ == *fields_.label) label = value;
    return true;
  }
  bool binary(binary_t&) override { return Other("binary"); }
  bool start_object(size_t) override {
    if (depth_ > 0 && !Other("an object")) return false;
    ++depth_;
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == 1) key_ = value;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(size_t) override {
    if (!Other("an array")) return false;
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception& exception) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: ..."
    std::string_view what = exception.what();
    if (const size_t column = what.find("column "); column != what.npos) {
      what.remove_prefix(column);
    }
    constexpr size_t kMostMessage = 200;
    error = StrCat("not valid JSON: ", what.substr(0, kMostMessage));
    return false;
  }

 private:
  bool Scalar(std::string value, std::string_view kind) {
    if (depth_ == 1 && fields_.label.has_value() && key_ == *fields_.label) {
      label = std::move(value);
      if (key_ != fields_.text) return true;
    }
    return Other(kind);
  }

  // A value that can be neither text nor label.
  bool Other(std::string_view kind) {
    if (depth_ == 0) {
      error = StrCat("want a JSON object, got ", kind);
      return false;
    }
    if (depth_ > 1) return true;
    const bool is_text = key_ == fields_.text;
    if (!is_text && !(fields_.label.has_value() && key_ == *fields_.label)) {
      return true;
    }
    error = StrCat("key \"", key_, "\" holds ", kind, ", want ",
                   is_text ? "a string" : "a string, number or boolean");
    return false;
  }

  const DocumentFields& fields_;
  int64_t depth_ = 0;
  std::string key_;
};

absl::Status VisitRow(std::string_view line, const DocumentFields& fields,
                      const DocumentOrigin& origin, DocumentVisitor& visitor) {
  RowHandler row(fields);
  Json::sax_parse(line.begin(), line.end(), &row);
  if (row.error.empty() && !row.text.has_value()) {
    row.error = StrCat("no key \"", fields.text, "\"");
  }
  if (row.error.empty() && fields.label.has_value() && !row.label.has_value()) {
    row.error = StrCat("no key \"", Excerpt(*fields.label), "\"");
  }
  if (!row.error.empty()) {
    return absl::InvalidArgumentError(StrCat(origin.Prefix(), row.error));
  }
  RETURN_IF_ERROR(visitor.Begin(origin, row.label.value_or("")));
  RETURN_IF_ERROR(visitor.Text(*row.text));
  return visitor.End();
}

}  // namespace

absl::Status ReadJsonl(BlockReader reader, const DocumentFields& fields,
                       const DataPart& part, int64_t& document,
                       DocumentVisitor& visitor) {
  const std::string& file = reader.file().display;
  LineReader lines(std::move(reader));
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<std::string_view> line,
                     lines.Next(kMostRowBytes));
    if (!line.has_value()) return absl::OkStatus();
    visitor.Consumed(static_cast<int64_t>(line->size()) + 1);
    if (line->find_first_not_of(" \t\r") == line->npos) continue;
    if (!part.Contains(document++)) continue;
    RETURN_IF_ERROR(VisitRow(*line, fields, {file, lines.line()}, visitor));
  }
}

}  // namespace lockstep
