// FinishCheckpoint: from the ranks' shards to a complete checkpoint under its
// final name, by one rename.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files/content_hash.h"
#include "common/files/file_error.h"
#include "common/files/file_reader.h"
#include "common/files/file_writer.h"
#include "common/files/sync_directory.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/checkpoint_file.h"
#include "worker/checkpoint/manifest.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Tokenizers and label lists; far above any real one.
constexpr uint64_t kMaxTokenizerBytes = uint64_t{64} << 20;

std::string StepName(int64_t step, int64_t generation) {
  return absl::StrCat("step-", step, ".g", generation);
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void RemoveAll(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) LOG(WARNING) << "removing " << path << ": " << error.message();
}

absl::Status WriteContents(const std::string& path,
                           const std::string& contents) {
  return WriteWholeFile(path, contents, kCheckpointFile).status();
}

// A tokenizer file that is to be copied.
struct Copy {
  std::string name;
  std::string contents;
};

absl::StatusOr<std::vector<Copy>> ReadTokenizer(
    const std::vector<std::string>& paths) {
  std::vector<Copy> copies;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(std::string contents,
                     ReadWholeFile(path, kMaxTokenizerBytes));
    copies.push_back({fs::path(path).filename().string(), std::move(contents)});
  }
  return copies;
}

// Every listed file is in `directory` with its size, and nothing else is.
absl::Status MatchFiles(const std::string& directory,
                        const v1::CheckpointManifest& manifest) {
  std::set<std::string> listed = {kManifestName};
  for (const v1::CheckpointManifest::File& file : manifest.files()) {
    listed.insert(file.name());
    const std::string path = absl::StrCat(directory, "/", file.name());
    std::error_code error;
    const uint64_t bytes = fs::file_size(path, error);
    if (error) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": ", error.message(),
                       " (do all hosts share the job folder?)"));
    }
    if (bytes != file.bytes()) {
      return absl::FailedPreconditionError(absl::StrCat(
          path, " has ", bytes, " bytes, its rank wrote ", file.bytes()));
    }
  }
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    if (listed.count(it->path().filename().string()) == 0) {
      RemoveAll(it->path().string());
    }
  }
  if (error) return FileError(error.value(), "list", directory);
  return absl::OkStatus();
}

// Gives `temporary` the name `path`; what had that name is gone.
absl::Status Rename(const std::string& temporary, const std::string& path) {
  if (!Exists(path)) {
    if (rename(temporary.c_str(), path.c_str()) != 0) {
      return FileError(errno, "rename to", path);
    }
    return absl::OkStatus();
  }
  // Both names exist at all times.
  if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(),
                RENAME_EXCHANGE) != 0) {
    if (errno != EINVAL && errno != ENOSYS) {
      return FileError(errno, "replace", path);
    }
    // A file system that can't exchange.
    RemoveAll(path);
    if (rename(temporary.c_str(), path.c_str()) != 0) {
      return FileError(errno, "rename to", path);
    }
    return absl::OkStatus();
  }
  RemoveAll(temporary);
  return absl::OkStatus();
}

absl::Status Complete(const std::string& temporary, const std::string& path,
                      const v1::CheckpointManifest& manifest,
                      const std::string& text,
                      const std::vector<Copy>& tokenizer,
                      const std::string& job_dir) {
  for (const Copy& copy : tokenizer) {
    RETURN_IF_ERROR(
        WriteContents(absl::StrCat(temporary, "/", copy.name), copy.contents));
  }
  RETURN_IF_ERROR(
      WriteContents(absl::StrCat(temporary, "/", kManifestName), text));
  RETURN_IF_ERROR(MatchFiles(temporary, manifest));
  RETURN_IF_ERROR(SyncDirectory(temporary));
  RETURN_IF_ERROR(Rename(temporary, path));
  return SyncDirectory(job_dir);
}

}  // namespace

std::string TemporaryCheckpointPath(const std::string& job_dir, int64_t step,
                                    int64_t generation) {
  return absl::StrCat(job_dir, "/.", StepName(step, generation), ".tmp");
}

std::string CheckpointPath(const std::string& job_dir, int64_t step,
                           int64_t generation) {
  return absl::StrCat(job_dir, "/", StepName(step, generation));
}

void DiscardCheckpoint(const std::string& job_dir, int64_t step,
                       int64_t generation) {
  RemoveAll(TemporaryCheckpointPath(job_dir, step, generation));
}

absl::StatusOr<FinishedCheckpoint> FinishCheckpoint(
    const std::string& job_dir, v1::CheckpointManifest manifest,
    absl::Span<const ShardDescription> shards,
    const std::vector<std::string>& tokenizer_files) {
  const std::string temporary =
      TemporaryCheckpointPath(job_dir, manifest.step(), manifest.generation());
  const std::string path =
      CheckpointPath(job_dir, manifest.step(), manifest.generation());

  FinishedCheckpoint finished;
  finished.path = path;
  const absl::Status status = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<Copy> tokenizer,
                     ReadTokenizer(tokenizer_files));
    manifest.clear_slices();
    manifest.clear_files();
    manifest.clear_tokenizer_files();
    for (const ShardDescription& shard : shards) {
      for (const auto& slice : shard.slices) *manifest.add_slices() = slice;
      *manifest.add_files() = shard.file;
    }
    // The lowest that has what this checkpoint needs: older programs read it.
    const bool by_columns =
        std::any_of(manifest.slices().begin(), manifest.slices().end(),
                    [](const auto& slice) { return slice.columns() != 0; });
    manifest.set_format_version(by_columns ? 2 : 1);
    for (const Copy& copy : tokenizer) {
      manifest.add_tokenizer_files(copy.name);
      v1::CheckpointManifest::File& file = *manifest.add_files();
      file.set_name(copy.name);
      file.set_bytes(copy.contents.size());
      file.set_xxh3(HashHex(copy.contents));
    }
    RETURN_IF_ERROR(CheckManifest(manifest).status());
    ASSIGN_OR_RETURN(const std::string text, PrintManifest(manifest));
    finished.manifest_hash = HashHex(text);
    finished.bytes = text.size();
    for (const auto& file : manifest.files()) finished.bytes += file.bytes();

    const absl::StatusOr<std::string> there =
        ReadWholeFile(absl::StrCat(path, "/", kManifestName), text.size());
    if (there.ok() && *there == text) {
      RemoveAll(temporary);
      return SyncDirectory(job_dir);
    }
    return Complete(temporary, path, manifest, text, tokenizer, job_dir);
  }();
  if (!status.ok()) {
    RemoveAll(temporary);
    return status;
  }
  return finished;
}

}  // namespace lockstep
