// The forms in which results are printed (-o).
#ifndef LOCKSTEP_CLI_OUTPUT_FORMAT_H_
#define LOCKSTEP_CLI_OUTPUT_FORMAT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/console.h"
#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"

namespace lockstep {

enum class OutputFormat { kTable, kWide, kJson, kYaml, kName };

// INVALID_ARGUMENT names the forms in `allowed`.
absl::StatusOr<OutputFormat> ParseOutputFormat(
    const std::string& word, const std::vector<OutputFormat>& allowed);

// Rows of one kind of thing, for all forms.
struct RecordList {
  std::vector<std::string> titles;
  // Further columns of -o wide.
  std::vector<std::string> wide_titles;
  struct Record {
    std::vector<std::string> cells;
    std::vector<std::string> wide_cells;
    // "job/kjv-1a2b".
    std::string name;
    nlohmann::ordered_json json;
  };
  std::vector<Record> records;
};

// Prints to `console.out`. JSON is one array.
void PrintRecords(const RecordList& list, OutputFormat format,
                  Console& console);

// Columns as wide as they must be, with titles.
void PrintTable(const std::vector<std::string>& titles,
                const std::vector<std::vector<std::string>>& rows,
                std::ostream& out);

// The message as JSON, or only the named fields of it.
nlohmann::ordered_json JsonOf(const google::protobuf::Message& message,
                              const std::vector<std::string>& fields = {});

// Prints one message as JSON or YAML.
void PrintMessage(const google::protobuf::Message& message, OutputFormat format,
                  Console& console);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_OUTPUT_FORMAT_H_
