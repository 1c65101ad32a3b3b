// StepsFile: the file of --steps-out, a JSON line per step. It grows while the
// job runs and is written anew at the end, whole and in order.
//
// Not thread-safe.
#ifndef LOCKSTEP_CLI_STEPS_FILE_H_
#define LOCKSTEP_CLI_STEPS_FILE_H_

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/v1/step_report.pb.h"

namespace lockstep {

class StepsFile {
 public:
  // Makes the file, or empties it.
  static absl::StatusOr<std::unique_ptr<StepsFile>> Open(std::string path);
  ~StepsFile();
  StepsFile(const StepsFile&) = delete;
  StepsFile& operator=(const StepsFile&) = delete;

  // An error is kept and told by Finish.
  void Append(const v1::StepReport& step);
  // The steps that the coordinator has of the whole job; they replace what was
  // appended. Where the oldest are no longer among them, and for a pipe, which
  // can't be written anew, those that the file hasn't had are added.
  absl::Status Finish(const std::vector<v1::StepReport>& steps);

 private:
  StepsFile(std::string path, std::FILE* file)
      : path_(std::move(path)), file_(file) {}
  void Write(const v1::StepReport& step);

  const std::string path_;
  std::FILE* const file_;
  // Lowest and last step that was appended.
  std::optional<int64_t> first_step_;
  int64_t last_step_ = 0;
  // errno of the first failed write.
  int error_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_STEPS_FILE_H_
