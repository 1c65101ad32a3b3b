#include "cli/job_file.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/text_file.h"
#include "common/spec/spec_reader.h"
#include "common/spec/yaml_tree.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr absl::string_view kExtensions[] = {".txt", ".jsonl", ".csv", ".bin"};

bool HasKnownExtension(const std::string& path) {
  for (const absl::string_view extension : kExtensions) {
    if (absl::EndsWith(path, extension)) return true;
  }
  return false;
}

void MakeAbsolute(const std::string& folder, std::string* path) {
  if (path->empty() || path->front() == '/') return;
  *path = (std::filesystem::path(folder) / *path).lexically_normal().string();
}

void MakeSourceAbsolute(const std::string& folder, v1::DataSource& source) {
  for (std::string& path : *source.mutable_path()) MakeAbsolute(folder, &path);
}

absl::Status CheckFile(const std::string& key, const std::string& path) {
  // Opened, not only looked at: rights may come from anywhere.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(key, ": ", path));
  }
  struct stat about = {};
  const bool known = fstat(file, &about) == 0;
  close(file);
  if (known && !S_ISREG(about.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, ": ", path, " is neither a file nor a folder"));
  }
  if (known && about.st_size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, ": ", path, " is empty"));
  }
  return absl::OkStatus();
}

absl::Status CheckFolder(const std::string& key, const std::string& path) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end;
       !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.front() != '.' && HasKnownExtension(name)) {
      return absl::OkStatus();
    }
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat(key, ": ", path));
  }
  return absl::NotFoundError(absl::StrCat(
      key, ": the folder ", path, " has no .txt, .jsonl, .csv or .bin file"));
}

// A path as it stands, a file or folder.
absl::Status CheckPath(const std::string& key, const std::string& path,
                       bool format_is_given) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return CheckFolder(key, path);
  RETURN_IF_ERROR(CheckFile(key, path));
  if (format_is_given || HasKnownExtension(path)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": the format of ", path,
                   " can't be told from its name (want .txt, .jsonl, .csv or "
                   ".bin); give format"));
}

}  // namespace

absl::StatusOr<v1::JobSpec> ReadJobFile(
    const std::string& path, const std::vector<std::string>& settings) {
  const auto text = ReadTextFile(path, kMostYamlBytes);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("job file ", text.status().message()));
  }
  v1::JobSpec spec;
  RETURN_IF_ERROR(ReadSpecText(*text, path, spec));
  for (const std::string& setting : settings) {
    RETURN_IF_ERROR(SetSpecField(setting, spec));
  }
  return spec;
}

std::string FolderOf(const std::string& path) {
  std::error_code error;
  return std::filesystem::absolute(path, error)
      .lexically_normal()
      .parent_path()
      .string();
}

void MakePathsAbsolute(const std::string& folder, v1::JobSpec& spec) {
  if (spec.model().from().size() > 0) {
    MakeAbsolute(folder, spec.mutable_model()->mutable_from());
  }
  if (!spec.has_data()) return;
  v1::DataSpec& data = *spec.mutable_data();
  if (data.has_train()) MakeSourceAbsolute(folder, *data.mutable_train());
  if (data.has_validation()) {
    MakeSourceAbsolute(folder, *data.mutable_validation());
  }
  if (data.has_tokenizer()) {
    MakeAbsolute(folder, data.mutable_tokenizer()->mutable_path());
  }
}

absl::Status CheckSourceInputs(const std::string& key,
                               const v1::DataSource& source) {
  const bool format_is_given = source.format() != v1::DATA_FORMAT_UNSPECIFIED;
  for (const std::string& path : source.path()) {
    std::error_code error;
    if (std::filesystem::exists(path, error) ||
        path.find_first_of("*?[") == std::string::npos) {
      RETURN_IF_ERROR(CheckPath(key, path, format_is_given));
      continue;
    }
    glob_t found = {};
    const int result = glob(path.c_str(), 0, nullptr, &found);
    absl::Status status = absl::OkStatus();
    if (result != 0) {
      status =
          absl::NotFoundError(absl::StrCat(key, ": nothing matches ", path));
    }
    for (size_t i = 0; status.ok() && i < found.gl_pathc; ++i) {
      status = CheckPath(key, found.gl_pathv[i], format_is_given);
    }
    globfree(&found);
    RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status CheckInputs(const v1::JobSpec& spec) {
  RETURN_IF_ERROR(CheckSourceInputs("data.train.path", spec.data().train()));
  RETURN_IF_ERROR(
      CheckSourceInputs("data.validation.path", spec.data().validation()));
  const std::string& tokenizer = spec.data().tokenizer().path();
  if (tokenizer.empty()) return absl::OkStatus();
  return CheckFile("data.tokenizer.path", tokenizer);
}

}  // namespace lockstep
