#include "worker/data/input_files.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/status_macros.h"
#include "worker/data/str_cat.h"

namespace lockstep {
namespace {

constexpr std::string_view kExtensions = ".txt, .jsonl, .csv or .bin";

v1::DataFormat FormatOfName(std::string_view name) {
  if (name.ends_with(".txt")) return v1::DATA_FORMAT_TEXT;
  if (name.ends_with(".jsonl")) return v1::DATA_FORMAT_JSONL;
  if (name.ends_with(".csv")) return v1::DATA_FORMAT_CSV;
  if (name.ends_with(".bin")) return v1::DATA_FORMAT_TOKENS;
  return v1::DATA_FORMAT_UNSPECIFIED;
}

// Collects files and settles their common format.
class Finder {
 public:
  Finder(const DataRoot& root, const v1::DataSource& source,
         std::string_view key)
      : root_(root), key_(key) {
    inputs_.format = source.format();
    explicit_ = source.format() != v1::DATA_FORMAT_UNSPECIFIED;
  }

  absl::Status AddPath(const std::string& given) {
    ASSIGN_OR_RETURN(const std::string path, root_.Relative(given));
    ASSIGN_OR_RETURN(const PathKind kind, root_.Kind(path));
    if (kind != PathKind::kMissing) return AddExisting(path, kind);
    if (path.find_first_of("*?[") == std::string::npos) {
      return absl::NotFoundError(
          StrCat(key_, ": there is no ", root_.Display(path)));
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> found, root_.Glob(path));
    if (found.empty()) {
      return absl::NotFoundError(
          StrCat(key_, ": nothing matches ", root_.Display(path)));
    }
    for (const std::string& match : found) {
      ASSIGN_OR_RETURN(const PathKind match_kind, root_.Kind(match));
      RETURN_IF_ERROR(AddExisting(match, match_kind));
    }
    return absl::OkStatus();
  }

  Inputs Take() { return std::move(inputs_); }

 private:
  absl::Status AddExisting(const std::string& path, PathKind kind) {
    return kind == PathKind::kFolder ? AddFolder(path) : AddFile(path);
  }

  absl::Status AddFolder(const std::string& folder) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, root_.List(folder));
    int64_t added = 0;
    for (const std::string& name : names) {
      const v1::DataFormat format = FormatOfName(name);
      if (name.front() == '.' || format == v1::DATA_FORMAT_UNSPECIFIED)
        continue;
      if (explicit_ && format != inputs_.format) continue;
      const std::string path = folder == "." ? name : StrCat(folder, "/", name);
      ASSIGN_OR_RETURN(const PathKind kind, root_.Kind(path));
      if (kind == PathKind::kFolder) continue;
      RETURN_IF_ERROR(AddFile(path));
      ++added;
    }
    if (added > 0) return absl::OkStatus();
    return absl::NotFoundError(
        StrCat(key_, ": the folder ", root_.Display(folder),
               " holds no file that ends ", "in ",
               explicit_ ? Extension(inputs_.format) : kExtensions));
  }

  absl::Status AddFile(const std::string& path) {
    RETURN_IF_ERROR(SettleFormat(path));
    ASSIGN_OR_RETURN(const OpenedFile opened, root_.OpenFile(path));
    if (opened.bytes == 0) {
      return absl::InvalidArgumentError(
          StrCat(key_, ": ", root_.Display(path), " is empty"));
    }
    if (!seen_.insert(path).second) {
      return absl::InvalidArgumentError(
          StrCat(key_, ".path names ", root_.Display(path), " more than once"));
    }
    inputs_.files.push_back(
        {path, root_.Display(path), opened.bytes, opened.mtime_ns});
    return absl::OkStatus();
  }

  absl::Status SettleFormat(const std::string& path) {
    if (explicit_) return absl::OkStatus();
    const v1::DataFormat format = FormatOfName(path);
    if (format == v1::DATA_FORMAT_UNSPECIFIED) {
      return absl::InvalidArgumentError(
          StrCat(key_, ": the format of ", root_.Display(path),
                 " can't be told from its name (want ", kExtensions, "); set ",
                 key_, ".format"));
    }
    if (inputs_.format == v1::DATA_FORMAT_UNSPECIFIED) inputs_.format = format;
    if (format != inputs_.format) {
      return absl::InvalidArgumentError(
          StrCat(key_, ": ", root_.Display(path), " is ", FormatName(format),
                 " by its name, but ", inputs_.files.front().display, " is ",
                 FormatName(inputs_.format), "; set ", key_, ".format"));
    }
    return absl::OkStatus();
  }

  static std::string_view Extension(v1::DataFormat format) {
    switch (format) {
      case v1::DATA_FORMAT_TEXT:
        return ".txt";
      case v1::DATA_FORMAT_JSONL:
        return ".jsonl";
      case v1::DATA_FORMAT_CSV:
        return ".csv";
      case v1::DATA_FORMAT_TOKENS:
        return ".bin";
      default:
        return kExtensions;
    }
  }

  const DataRoot& root_;
  const std::string_view key_;
  bool explicit_ = false;
  std::set<std::string> seen_;
  Inputs inputs_;
};

}  // namespace

int64_t Inputs::bytes() const {
  int64_t sum = 0;
  for (const InputFile& file : files) sum += file.bytes;
  return sum;
}

absl::StatusOr<Inputs> FindInputs(const DataRoot& root,
                                  const v1::DataSource& source,
                                  std::string_view key) {
  if (source.path().empty()) {
    return absl::InvalidArgumentError(StrCat(key, ".path is not given"));
  }
  Finder finder(root, source, key);
  for (const std::string& path : source.path()) {
    RETURN_IF_ERROR(finder.AddPath(path));
  }
  return finder.Take();
}

absl::StatusOr<OpenedFile> OpenInput(const DataRoot& root,
                                     const InputFile& file) {
  ASSIGN_OR_RETURN(OpenedFile opened, root.OpenFile(file.path));
  if (opened.bytes != file.bytes || opened.mtime_ns != file.mtime_ns) {
    return absl::FailedPreconditionError(StrCat(
        file.display, " changed while the job was reading it: ", opened.bytes,
        " bytes, had ", file.bytes));
  }
  return opened;
}

std::string_view FormatName(v1::DataFormat format) {
  switch (format) {
    case v1::DATA_FORMAT_TEXT:
      return "text";
    case v1::DATA_FORMAT_JSONL:
      return "jsonl";
    case v1::DATA_FORMAT_CSV:
      return "csv";
    case v1::DATA_FORMAT_TOKENS:
      return "tokens";
    default:
      return "unknown";
  }
}

}  // namespace lockstep
