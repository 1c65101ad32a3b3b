#include "worker/data/data_root.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;

class DataRootTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_.Write("outside.txt", "secret");
    dir_.Write("root/a.txt", "aa");
    dir_.Write("root/sub/b.txt", "b");
    dir_.Write("root/sub/c.csv", "c");
    dir_.Write("root/sub/.hidden.txt", "h");
    root_path_ = dir_.File("root");
  }
  DataRoot Open() {
    absl::StatusOr<DataRoot> root = DataRoot::Open(root_path_);
    CHECK(root.ok()) << root.status();
    return *std::move(root);
  }

  TempDir dir_;
  std::string root_path_;
};

TEST_F(DataRootTest, AbsoluteAndRelativePathsMeanTheSameFile) {
  const DataRoot root = Open();
  EXPECT_THAT(root.Relative(root_path_ + "/sub/b.txt"),
              IsOkAndHolds(Eq("sub/b.txt")));
  EXPECT_THAT(root.Relative("./sub//b.txt"), IsOkAndHolds(Eq("sub/b.txt")));
  EXPECT_THAT(root.Relative(root_path_), IsOkAndHolds(Eq(".")));
  ASSERT_OK_AND_ASSIGN(const OpenedFile file, root.OpenFile("a.txt"));
  EXPECT_EQ(file.bytes, 2);
  EXPECT_GT(file.mtime_ns, 0);
}

TEST_F(DataRootTest, APathOutsideIsRefused) {
  const DataRoot root = Open();
  EXPECT_THAT(root.Relative(dir_.File("outside.txt")),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("outside.txt"), HasSubstr(root_path_))));
  // A sibling whose name starts like the root's.
  EXPECT_THAT(root.Relative(root_path_ + "2/x"),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(root.OpenFile("../outside.txt"),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("outside the data root")));
  EXPECT_THAT(root.OpenFile("sub/../../outside.txt"),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(DataRootTest, SymbolicLinksMayNotLeadOut) {
  std::filesystem::create_symlink("../../outside.txt",
                                  root_path_ + "/sub/out.txt");
  std::filesystem::create_symlink(dir_.File("outside.txt"),
                                  root_path_ + "/absolute.txt");
  std::filesystem::create_symlink("sub/b.txt", root_path_ + "/inside.txt");
  std::filesystem::create_directory_symlink(dir_.path(), root_path_ + "/up");
  const DataRoot root = Open();
  EXPECT_OK(root.OpenFile("inside.txt"));
  EXPECT_THAT(root.OpenFile("sub/out.txt"),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(root.OpenFile("absolute.txt"),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("absolute.txt is an absolute symbolic"),
                             HasSubstr(dir_.File("outside.txt")))));
  EXPECT_THAT(root.OpenFile("up/outside.txt"),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("/up is an absolute symbolic link")));
}

TEST_F(DataRootTest, ARootOfSlashOpensPlainly) {
  std::filesystem::create_symlink(dir_.File("outside.txt"),
                                  root_path_ + "/absolute.txt");
  ASSERT_OK_AND_ASSIGN(const DataRoot root, DataRoot::Open("/"));
  ASSERT_OK_AND_ASSIGN(const std::string path,
                       root.Relative(root_path_ + "/absolute.txt"));
  ASSERT_OK_AND_ASSIGN(const OpenedFile file, root.OpenFile(path));
  EXPECT_EQ(file.bytes, 6);
  EXPECT_EQ(root.Display(path), root_path_ + "/absolute.txt");
}

TEST_F(DataRootTest, OnlyRegularFilesAreOpened) {
  ASSERT_EQ(mkfifo((root_path_ + "/pipe.txt").c_str(), 0600), 0);
  const DataRoot root = Open();
  EXPECT_THAT(root.OpenFile("pipe.txt"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a regular file")));
  EXPECT_THAT(root.OpenFile("sub"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(root.OpenFile("none.txt"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.txt")));
}

TEST_F(DataRootTest, GlobMatchesInAnyComponent) {
  const DataRoot root = Open();
  EXPECT_THAT(root.Glob("s*/*.txt"), IsOkAndHolds(ElementsAre("sub/b.txt")));
  EXPECT_THAT(root.Glob("*/[bc].*"),
              IsOkAndHolds(ElementsAre("sub/b.txt", "sub/c.csv")));
  EXPECT_THAT(root.Glob("sub/.h*"),
              IsOkAndHolds(ElementsAre("sub/.hidden.txt")));
  EXPECT_THAT(root.Glob("none/*"), IsOkAndHolds(ElementsAre()));
}

TEST_F(DataRootTest, AMissingRootIsNotFound) {
  EXPECT_THAT(DataRoot::Open(dir_.File("nowhere")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nowhere")));
}

}  // namespace
}  // namespace lockstep
