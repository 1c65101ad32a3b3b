#include "cli/output_format.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/spec/spec_printer.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string Word(OutputFormat format) {
  switch (format) {
    case OutputFormat::kTable:
      return "table";
    case OutputFormat::kWide:
      return "wide";
    case OutputFormat::kJson:
      return "json";
    case OutputFormat::kYaml:
      return "yaml";
    case OutputFormat::kName:
      return "name";
  }
  return "";
}

// Characters, not bytes, of UTF-8 text.
size_t Width(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (c & 0xC0) != 0x80; });
}

std::vector<std::string> Joined(std::vector<std::string> first,
                                const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

absl::StatusOr<OutputFormat> ParseOutputFormat(
    const std::string& word, const std::vector<OutputFormat>& allowed) {
  std::vector<std::string> words;
  for (const OutputFormat format : allowed) {
    if (Word(format) == word) return format;
    words.push_back(Word(format));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "-o is \"", word, "\", want one of ", absl::StrJoin(words, ", ")));
}

void PrintTable(const std::vector<std::string>& titles,
                const std::vector<std::vector<std::string>>& rows,
                std::ostream& out) {
  std::vector<size_t> widths;
  for (const std::string& title : titles) widths.push_back(Width(title));
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], Width(row[i]));
    }
  }
  const auto print = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      // The last column needs no padding.
      const size_t pad = i + 1 < row.size() ? widths[i] + 2 - Width(row[i]) : 0;
      absl::StrAppend(&line, row[i], std::string(pad, ' '));
    }
    // Messages may have lines; a row has one.
    std::replace(line.begin(), line.end(), '\n', ' ');
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out << line << "\n";
  };
  print(titles);
  for (const auto& row : rows) print(row);
}

void PrintRecords(const RecordList& list, OutputFormat format,
                  Console& console) {
  std::vector<std::vector<std::string>> rows;
  Json array = Json::array();
  for (const RecordList::Record& record : list.records) {
    if (format == OutputFormat::kName) console.out << record.name << "\n";
    rows.push_back(format == OutputFormat::kWide
                       ? Joined(record.cells, record.wide_cells)
                       : record.cells);
    array.push_back(record.json);
  }
  switch (format) {
    case OutputFormat::kTable:
      PrintTable(list.titles, rows, console.out);
      break;
    case OutputFormat::kWide:
      PrintTable(Joined(list.titles, list.wide_titles), rows, console.out);
      break;
    case OutputFormat::kJson:
      console.out << Dump(array, 2) << "\n";
      break;
    case OutputFormat::kYaml:
      console.out << JsonToYaml(array);
      break;
    case OutputFormat::kName:
      break;
  }
}

Json JsonOf(const google::protobuf::Message& message,
            const std::vector<std::string>& fields) {
  // Our own printer's text is always JSON.
  const Json all = Json::parse(ToJson(message, JsonStyle::kLine));
  if (fields.empty()) return all;
  Json picked = Json::object();
  for (const std::string& field : fields) {
    if (all.contains(field)) picked[field] = all[field];
  }
  return picked;
}

void PrintMessage(const google::protobuf::Message& message, OutputFormat format,
                  Console& console) {
  console.out << (format == OutputFormat::kYaml
                      ? ToYaml(message)
                      : ToJson(message, JsonStyle::kIndented) + "\n");
}

}  // namespace lockstep
