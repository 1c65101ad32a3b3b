#include "coordinator/jobs/log_reader.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::lockstep::testing::TempDir;
using ::testing::ElementsAre;

std::vector<std::string> Text(const std::vector<v1::LogLine>& lines) {
  std::vector<std::string> text;
  for (const v1::LogLine& line : lines) {
    text.push_back(std::to_string(line.rank()) + ":" + line.line());
  }
  return text;
}

TEST(LogReaderTest, NewLinesComeOnceAndWhole) {
  const TempDir dir;
  LogReader reader(dir.path(), std::nullopt, 0);
  EXPECT_THAT(Text(reader.Poll()), ElementsAre());
  dir.Write("rank-0.log", "one\ntw");
  EXPECT_THAT(Text(reader.Poll()), ElementsAre("0:one"));
  EXPECT_THAT(Text(reader.Poll()), ElementsAre());
  dir.Write("rank-0.log", "one\ntwo\nthr");
  EXPECT_THAT(Text(reader.Poll()), ElementsAre("0:two"));
  EXPECT_THAT(Text(reader.Finish()), ElementsAre("0:thr"));
  EXPECT_THAT(Text(reader.Finish()), ElementsAre());
}

TEST(LogReaderTest, RanksAreMergedByTime) {
  const TempDir dir;
  dir.Write("rank-0.log",
            "2026-01-02T03:04:05.000001Z info a\n"
            "2026-01-02T03:04:05.000004Z info d\n  more of d\n");
  dir.Write("rank-1.log",
            "{\"time\":\"2026-01-02T03:04:05.000002Z\",\"message\":\"b\"}\n"
            "2026-01-02T03:04:05.000003Z info c\n");
  LogReader reader(dir.path(), std::nullopt, 0);
  const auto lines = reader.Poll();
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0].rank(), 0);
  EXPECT_EQ(lines[1].rank(), 1);
  EXPECT_EQ(lines[2].rank(), 1);
  EXPECT_EQ(lines[3].rank(), 0);
  EXPECT_EQ(lines[4].line(), "  more of d");
}

TEST(LogReaderTest, OneRankAndOtherFilesAreLeftOut) {
  const TempDir dir;
  dir.Write("rank-0.log", "zero\n");
  dir.Write("rank-1.log", "one\n");
  dir.Write("rank-x.log", "no\n");
  dir.Write("notes.txt", "no\n");
  LogReader reader(dir.path(), 1, 0);
  EXPECT_THAT(Text(reader.Poll()), ElementsAre("1:one"));
}

class LogReaderTailTest : public ::testing::TestWithParam<int> {};

TEST_P(LogReaderTailTest, BeginsWithTheLastLines) {
  const int tail = GetParam();
  for (const bool ended : {true, false}) {
    const TempDir dir;
    std::string text;
    for (int i = 1; i <= 5; ++i) {
      text += std::to_string(i) + (i < 5 || ended ? "\n" : "");
    }
    dir.Write("rank-0.log", text);
    LogReader reader(dir.path(), std::nullopt, tail);
    std::vector<std::string> lines = Text(reader.Poll());
    for (const std::string& line : Text(reader.Finish())) lines.push_back(line);
    std::vector<std::string> wanted;
    for (int i = std::max(1, 6 - tail); i <= 5; ++i) {
      wanted.push_back("0:" + std::to_string(i));
    }
    EXPECT_EQ(lines, wanted) << (ended ? "ended" : "open");
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, LogReaderTailTest,
                         ::testing::Values(1, 2, 4, 5, 9));

TEST(LogReaderTest, LongLineComesInPieces) {
  const TempDir dir;
  std::string text(200'001, 'x');
  text.back() = '\n';
  dir.Write("rank-0.log", text);
  LogReader reader(dir.path(), std::nullopt, 0);
  size_t bytes = 0;
  for (const v1::LogLine& line : reader.Poll()) bytes += line.line().size();
  EXPECT_EQ(bytes, 200'000u);
}

}  // namespace
}  // namespace lockstep
