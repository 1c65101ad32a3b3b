// A disk that fills up while a checkpoint is written: RESOURCE_EXHAUSTED with
// the path, and nothing half-written that could be taken for a checkpoint.
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "tests/testing/status_matchers.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::SmallManifest;
using testing::StatusIs;
using testing::TempDir;

// Limits the size of this process's files; a real limit of the kernel's, and
// needs no rights.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limit = old_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit old_;
};

const std::vector<float>& BigValues() {
  static const auto* const values = new std::vector<float>(100000, 1.0f);
  return *values;
}

std::vector<TensorSlice> BigSlices() {
  return {{"big", "parameter", {100000}, 0, BigValues()}};
}

TEST(FullDiskTest, ShardThatDoesntFitIsRemoved) {
  const TempDir job_dir;
  const std::string temporary = TemporaryCheckpointPath(job_dir.path(), 1, 1);
  const FileSizeLimit limit(50000);
  EXPECT_THAT(WriteShard(temporary, 0, BigSlices()),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("rank-0.safetensors"),
                             HasSubstr(" bytes at 50000"))));
  EXPECT_TRUE(fs::is_empty(temporary));
}

// They may still be writing: to find the folder gone would hide the cause.
TEST(FullDiskTest, ShardsOfOtherRanksStay) {
  const TempDir job_dir;
  ASSERT_OK(testing::WriteShards(job_dir.path(), testing::SmallModel(), 2));
  const std::string temporary = TemporaryCheckpointPath(job_dir.path(), 40, 2);
  const FileSizeLimit limit(50000);
  EXPECT_THAT(WriteShard(temporary, 2, BigSlices()),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(fs::exists(temporary + "/rank-0.safetensors"));
  EXPECT_TRUE(fs::exists(temporary + "/rank-1.safetensors"));
  EXPECT_FALSE(fs::exists(temporary + "/rank-2.safetensors"));
}

TEST(FullDiskTest, ManifestThatDoesntFitLeavesNoCheckpoint) {
  const TempDir job_dir;
  ASSERT_OK_AND_ASSIGN(
      const auto shards,
      testing::WriteShards(job_dir.path(), testing::SmallModel(), 2));
  {
    const FileSizeLimit limit(100);
    EXPECT_THAT(FinishCheckpoint(job_dir.path(), SmallManifest(), shards, {}),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("manifest.json")));
  }
  EXPECT_TRUE(fs::is_empty(job_dir.path()));
}

// A file system of 64 KiB of its own.
class TinyDisk {
 public:
  TinyDisk() {
    mounted_ =
        mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=64k") == 0;
  }
  ~TinyDisk() {
    if (mounted_) umount2(folder_.path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const std::string& path() const { return folder_.path(); }

 private:
  const TempDir folder_;
  bool mounted_ = false;
};

TEST(FullDiskTest, FullFileSystemIsNamed) {
  const TinyDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "no right to mount a small tmpfs";
  EXPECT_THAT(
      WriteShard(TemporaryCheckpointPath(disk.path(), 1, 1), 0, BigSlices()),
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("No space left on device")));
  EXPECT_TRUE(fs::is_empty(TemporaryCheckpointPath(disk.path(), 1, 1)));
}

}  // namespace
}  // namespace lockstep
