#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"
#include "worker/checkpoint/checkpoint.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempDir;

// A shard in the temporary folder of that attempt's checkpoint.
void WriteTorn(const TempDir& job_dir, int64_t step, int64_t generation) {
  const fs::path folder =
      TemporaryCheckpointPath(job_dir.path(), step, generation);
  job_dir.Write(folder.filename().string() + "/rank-0.safetensors", "torn");
}

TEST(StaleCheckpointsTest, FoldersOfOlderGenerationsGo) {
  const TempDir job_dir;
  WriteTorn(job_dir, 5, 1);
  WriteTorn(job_dir, 100, 2);
  WriteTorn(job_dir, 100, 9);
  SweepStaleCheckpoints(job_dir.path(), 10);
  EXPECT_TRUE(fs::is_empty(job_dir.path()));
}

TEST(StaleCheckpointsTest, FoldersOfOurOwnAndNewerGenerationsStay) {
  const TempDir job_dir;
  WriteTorn(job_dir, 5, 3);
  WriteTorn(job_dir, 5, 20);
  SweepStaleCheckpoints(job_dir.path(), 3);
  EXPECT_EQ(job_dir.Read(".step-5.g3.tmp/rank-0.safetensors"), "torn");
  EXPECT_EQ(job_dir.Read(".step-5.g20.tmp/rank-0.safetensors"), "torn");
}

TEST(StaleCheckpointsTest, NothingElseIsTouched) {
  const TempDir job_dir;
  for (const char* name :
       {"step-5.g1/manifest.json", ".step-5.g1/x", ".step-5.g1.tmp.old/x",
        ".step-x.g1.tmp/x", ".step-5.g.tmp/x", ".step-05.g1.tmp/x",
        ".step-5.g+1.tmp/x", ".step-5.g1.g1.tmp/x", "log/rank-0.log",
        ".step-6.g1.tmp"}) {  // the last is a file
    job_dir.Write(name, "kept");
    SweepStaleCheckpoints(job_dir.path(), 2);
    EXPECT_EQ(job_dir.Read(name), "kept") << name;
  }
  fs::create_directory_symlink(job_dir.File("log"),
                               job_dir.File(".step-7.g1.tmp"));
  SweepStaleCheckpoints(job_dir.path(), 2);
  EXPECT_TRUE(fs::is_symlink(job_dir.File(".step-7.g1.tmp")));
  EXPECT_EQ(job_dir.Read("log/rank-0.log"), "kept");
}

TEST(StaleCheckpointsTest, WhatGoesIsLogged) {
  const TempDir job_dir;
  WriteTorn(job_dir, 5, 1);
  ::testing::internal::CaptureStderr();
  SweepStaleCheckpoints(job_dir.path(), 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr(job_dir.File(".step-5.g1.tmp")),
                    HasSubstr("this is generation 2")));
}

TEST(StaleCheckpointsTest, JobFolderThatIsntThereIsFine) {
  const TempDir job_dir;
  ::testing::internal::CaptureStderr();
  SweepStaleCheckpoints(job_dir.File("none"), 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
  EXPECT_FALSE(fs::exists(job_dir.File("none")));
}

}  // namespace
}  // namespace lockstep
