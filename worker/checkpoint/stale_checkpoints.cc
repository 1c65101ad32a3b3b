// SweepStaleCheckpoints: removes what earlier attempts of a job left half
// written.
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/log.h"
#include "worker/checkpoint/checkpoint.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// G of `.step-N.gG.tmp`; nothing for any other name.
std::optional<int64_t> GenerationOf(const fs::path& folder) {
  const std::string name = folder.filename().string();
  absl::string_view rest = name;
  if (!absl::ConsumePrefix(&rest, ".step-") ||
      !absl::ConsumeSuffix(&rest, ".tmp")) {
    return std::nullopt;
  }
  const std::vector<absl::string_view> numbers = absl::StrSplit(rest, ".g");
  int64_t step;
  int64_t generation;
  if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &step) ||
      !absl::SimpleAtoi(numbers[1], &generation)) {
    return std::nullopt;
  }
  // Spelled as we spell it: no sign, space or leading zero.
  const fs::path ours = TemporaryCheckpointPath("", step, generation);
  if (ours.filename() != name) return std::nullopt;
  return generation;
}

}  // namespace

void SweepStaleCheckpoints(const std::string& job_dir, int64_t generation) {
  std::error_code error;
  std::vector<fs::path> stale;
  for (fs::directory_iterator it(job_dir, error), end; !error && it != end;
       it.increment(error)) {
    const std::optional<int64_t> written_by = GenerationOf(it->path());
    std::error_code ignored;
    // A link is not a folder of ours.
    if (written_by.has_value() && *written_by < generation &&
        it->symlink_status(ignored).type() == fs::file_type::directory) {
      stale.push_back(it->path());
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    LOG(WARNING) << "looking for stale checkpoints in " << job_dir << ": "
                 << error.message();
  }
  for (const fs::path& folder : stale) {
    fs::remove_all(folder, error);
    if (error) {
      LOG(WARNING) << "removing the stale checkpoint " << folder.string()
                   << ": " << error.message();
    } else {
      LOG(INFO) << "removed the stale checkpoint " << folder.string()
                << ": this is generation " << generation;
    }
  }
}

}  // namespace lockstep
