// The files that a data source names: paths, folders and globs made into one
// list of regular, non-empty files of one format.
#ifndef LOCKSTEP_WORKER_DATA_INPUT_FILES_H_
#define LOCKSTEP_WORKER_DATA_INPUT_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/v1/job.pb.h"
#include "worker/data/data_root.h"

namespace lockstep {

struct InputFile {
  std::string path;     // relative to the data root
  std::string display;  // for messages
  int64_t bytes = 0;
  int64_t mtime_ns = 0;
};

struct Inputs {
  v1::DataFormat format = v1::DATA_FORMAT_UNSPECIFIED;
  // In the order of the source's paths; those of a folder or a glob by name.
  std::vector<InputFile> files;

  int64_t bytes() const;
};

// `key` ("data.train") is for messages. A folder stands for the files directly
// in it that have an extension of the format (.txt, .jsonl, .csv, .bin) and no
// leading dot.
//   NOT_FOUND: a path that isn't there, a glob without a match, a folder
//     without such files. INVALID_ARGUMENT: an empty file, a file named twice,
//     files of unlike formats, an unknown extension without `format`.
absl::StatusOr<Inputs> FindInputs(const DataRoot& root,
                                  const v1::DataSource& source,
                                  std::string_view key);

// Opens one of them again. FAILED_PRECONDITION if it has changed since.
absl::StatusOr<OpenedFile> OpenInput(const DataRoot& root,
                                     const InputFile& file);

// "text", "jsonl", "csv" or "tokens".
std::string_view FormatName(v1::DataFormat format);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_INPUT_FILES_H_
