// A full disk: the job fails with its cause, in words, and nothing hangs.

#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/sandbox.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/tiny_job.h"

namespace lockstep {
namespace {

using ::lockstep::testing::CommandResult;
using ::lockstep::testing::Sandbox;
using ::lockstep::testing::TinyJob;
using ::lockstep::testing::WriteJob;
using ::nlohmann::json;
using ::testing::HasSubstr;

// A file system of 2 MiB at `path`, for as long as this lives.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    std::filesystem::create_directories(path);
    if (mount("tmpfs", path.c_str(), "tmpfs", 0, "size=2m") != 0) {
      error_ = strerror(errno);
    }
  }
  ~SmallDisk() {
    if (error_.empty()) umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  // Why it could not be mounted; empty if it is.
  const std::string& error() const { return error_; }

 private:
  const std::string path_;
  std::string error_;
};

TEST(FullDiskTest, CheckpointThatDoesNotFitFailsTheJobWithItsCause) {
  Sandbox sandbox;
  SmallDisk disk(sandbox.dir().File("small"));
  if (!disk.error().empty()) {
    GTEST_SKIP() << "mounting a small file system: " << disk.error();
  }
  json job = TinyJob(sandbox.dir());
  job["model"]["width"] = 256;  // 6 MiB of weights and moments and more

  const CommandResult run =
      sandbox.Lockstep({"run", WriteJob(sandbox.dir(), job), "--local", "2",
                        "--dir", "small/state", "-o", "json"});

  EXPECT_EQ(run.code, 1) << run;
  ASSERT_TRUE(run.Json().is_object()) << run;
  EXPECT_EQ(run.Json()["attempts"][0]["cause"], "disk_full") << run;
  EXPECT_THAT(run.err, HasSubstr("small/state"));
  EXPECT_OK(sandbox.WaitForNothingLeft(absl::Seconds(10)));
}

}  // namespace
}  // namespace lockstep
