#include "common/files/file_writer.h"

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>

#include "common/files/content_hash.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::StatusIs;
using testing::TempDir;

constexpr FileWriterOptions kReplace = {
    .if_present = FileWriterOptions::IfPresent::kReplace, .mode = 0644};

TEST(FileWriterTest, PiecesOfAllSizesAreWrittenAndHashedInOrder) {
  const TempDir dir;
  std::string all;
  ASSERT_OK_AND_ASSIGN(const auto file, FileWriter::Create(dir.File("f")));
  for (const size_t bytes : {0, 1, 1000, 1 << 20, 3, (5 << 20) + 7, 2}) {
    const std::string piece(bytes, static_cast<char>('a' + bytes % 26));
    ASSERT_OK(file->Append(piece));
    all += piece;
  }
  ASSERT_OK_AND_ASSIGN(const WrittenFile written, file->Finish());
  EXPECT_EQ(written.bytes, static_cast<int64_t>(all.size()));
  EXPECT_EQ(written.hash, HashHex(all));
  EXPECT_TRUE(dir.Read("f") == all);
}

TEST(FileWriterTest, UnfinishedFileIsRemoved) {
  const TempDir dir;
  {
    ASSERT_OK_AND_ASSIGN(const auto file, FileWriter::Create(dir.File("f")));
    ASSERT_OK(file->Append("x"));
    EXPECT_TRUE(fs::exists(dir.File("f")));
  }
  EXPECT_FALSE(fs::exists(dir.File("f")));
}

TEST(FileWriterTest, PresentFileIsRefusedOrReplacedAsAsked) {
  const TempDir dir;
  dir.Write("f", "older and longer");
  EXPECT_THAT(
      WriteWholeFile(dir.File("f"), "new"),
      StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("can't create")));
  EXPECT_EQ(dir.Read("f"), "older and longer");
  ASSERT_OK(WriteWholeFile(dir.File("f"), "new", kReplace));
  EXPECT_EQ(dir.Read("f"), "new");
}

TEST(FileWriterTest, SymbolicLinkIsNotFollowed) {
  const TempDir dir;
  dir.Write("target", "kept");
  fs::create_symlink(dir.File("target"), dir.File("link"));
  EXPECT_THAT(WriteWholeFile(dir.File("link"), "new", kReplace),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("link")));
  EXPECT_EQ(dir.Read("target"), "kept");
}

TEST(FileWriterTest, MissingFolderIsNotFound) {
  const TempDir dir;
  EXPECT_THAT(
      WriteWholeFile(dir.File("none/f"), "x"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir.File("none/f"))));
}

TEST(FileWriterTest, FullDiskNamesPathAndBytes) {
  const TempDir dir;
  signal(SIGXFSZ, SIG_IGN);
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit limit = old;
  limit.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &limit);
  const absl::Status status =
      WriteWholeFile(dir.File("f"), std::string(1500, 'x')).status();
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("can't write 500 bytes at 1000 of"),
                             HasSubstr(dir.File("f")))));
  EXPECT_FALSE(fs::exists(dir.File("f")));
}

}  // namespace
}  // namespace lockstep
