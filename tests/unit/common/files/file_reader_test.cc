#include "common/files/file_reader.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "common/files/content_hash.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::IsOkAndHolds;
using testing::StatusIs;
using testing::TempDir;

TEST(FileReaderTest, ExactRangesAreRead) {
  const TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto file,
                       FileReader::Open(dir.Write("f", "0123456789")));
  EXPECT_EQ(file->bytes(), 10u);
  std::string out(4, '\0');
  ASSERT_OK(file->Read(3, out.data(), out.size()));
  EXPECT_EQ(out, "3456");
  EXPECT_THAT(file->Read(8, out.data(), out.size()),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("ends at byte 10, want 2 more")));
}

TEST(FileReaderTest, HashIsThatOfTheContents) {
  const TempDir dir;
  const std::string contents((2 << 20) + 5, 'x');
  ASSERT_OK_AND_ASSIGN(const auto file,
                       FileReader::Open(dir.Write("f", contents)));
  EXPECT_THAT(file->Hash(), IsOkAndHolds(HashHex(contents)));
}

TEST(FileReaderTest, OnlyRegularFilesAreOpened) {
  const TempDir dir;
  ASSERT_EQ(mkfifo(dir.File("pipe").c_str(), 0600), 0);
  EXPECT_THAT(FileReader::Open(dir.File("pipe")),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("pipe is not a regular file")));
  std::filesystem::create_symlink(dir.Write("f", "x"), dir.File("link"));
  EXPECT_THAT(FileReader::Open(dir.File("link")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("link")));
  EXPECT_THAT(FileReader::Open(dir.File("none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

TEST(ReadWholeFileTest, LargerFileThanTheLimitIsRefused) {
  const TempDir dir;
  const std::string path = dir.Write("f", "0123456789");
  EXPECT_THAT(ReadWholeFile(path, 10), IsOkAndHolds("0123456789"));
  EXPECT_THAT(ReadWholeFile(path, 9),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("10 bytes, want at most 9")));
}

// Known answer of XXH3 with 128 bits: manifests on disk hold such hashes.
TEST(ContentHashTest, HashIsXxh3WhateverThePieces) {
  ContentHash pieces;
  pieces.Add("lock");
  pieces.Add("");
  pieces.Add("step");
  EXPECT_EQ(pieces.Hex(), HashHex("lockstep"));
  EXPECT_EQ(HashHex(""), "99aa06d3014798d86001c324468d497f");
}

}  // namespace
}  // namespace lockstep
