#include "cli/steps_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/spec/spec_printer.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<StepsFile>> StepsFile::Open(std::string path) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) {
    return absl::InvalidArgumentError(
        absl::ErrnoToStatus(errno, absl::StrCat("--steps-out ", path))
            .message());
  }
  return std::unique_ptr<StepsFile>(new StepsFile(std::move(path), file));
}

StepsFile::~StepsFile() { std::fclose(file_); }

void StepsFile::Write(const v1::StepReport& step) {
  const std::string line = ToJson(step, JsonStyle::kLine) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() &&
      error_ == 0) {
    error_ = errno;
  }
}

void StepsFile::Append(const v1::StepReport& step) {
  Write(step);
  first_step_ = std::min(first_step_.value_or(step.step()), step.step());
  last_step_ = step.step();
  // A reader who follows the file sees whole lines.
  if (std::fflush(file_) != 0 && error_ == 0) error_ = errno;
}

absl::Status StepsFile::Finish(const std::vector<v1::StepReport>& steps) {
  const bool has_all = !first_step_.has_value() ||
                       (!steps.empty() && steps.front().step() <= *first_step_);
  const bool rewritable = has_all && std::fseek(file_, 0, SEEK_SET) == 0 &&
                          ftruncate(fileno(file_), 0) == 0;
  // What failed before is written again.
  if (rewritable) error_ = 0;
  for (const v1::StepReport& step : steps) {
    if (rewritable || step.step() > last_step_) Write(step);
  }
  if (std::fflush(file_) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(error_, absl::StrCat("--steps-out ", path_));
}

}  // namespace lockstep
