// The job file as `run` and `submit` take it.
#ifndef LOCKSTEP_CLI_JOB_FILE_H_
#define LOCKSTEP_CLI_JOB_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/v1/job.pb.h"

namespace lockstep {

// Reads the file and applies `settings` ("train.steps=50").
//   INVALID_ARGUMENT names file, line and column, or the setting.
absl::StatusOr<v1::JobSpec> ReadJobFile(
    const std::string& path, const std::vector<std::string>& settings);

// Makes the relative paths of `spec` absolute, from `folder` on.
void MakePathsAbsolute(const std::string& folder, v1::JobSpec& spec);

// Folder of the job file, absolute.
std::string FolderOf(const std::string& path);

// What can be seen of a job's inputs on this host without reading them: a
// missing, empty or unreadable file, a glob that matches nothing, a folder
// without data, a format that can't be told. Paths must be absolute.
//   NOT_FOUND, INVALID_ARGUMENT or PERMISSION_DENIED names key and path.
absl::Status CheckInputs(const v1::JobSpec& spec);
// One source; `key` is for messages.
absl::Status CheckSourceInputs(const std::string& key,
                               const v1::DataSource& source);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_JOB_FILE_H_
