#include "worker/agent/rank_log.h"

#include <unistd.h>

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::StatusIs;
using testing::TempDir;

void Print(const FileDescriptor& end, const std::string& text) {
  ASSERT_EQ(write(end.get(), text.data(), text.size()),
            static_cast<ssize_t>(text.size()));
}

TEST(RankLogTest, WritesWhatIsPrintedAndKnowsTheLastLine) {
  TempDir folder;
  ASSERT_OK_AND_ASSIGN(auto log,
                       RankLog::Open(folder.File("g1/rank-0.log"), 1000));
  const FileDescriptor end = log->TakeWriteEnd();
  Print(end, "first\nsecond\n");
  // Also while the pipe is still open, as it is when a rank's child lives on.
  log->Drain();
  EXPECT_EQ(folder.Read("g1/rank-0.log"), "first\nsecond\n");
  EXPECT_EQ(log->LastLine(), "second");
}

TEST(RankLogTest, BeyondTheCapLinesAreDroppedAndTheFileSaysSo) {
  TempDir folder;
  ASSERT_OK_AND_ASSIGN(auto log, RankLog::Open(folder.File("rank-0.log"), 10));
  FileDescriptor end = log->TakeWriteEnd();
  Print(end, "0123456789");
  Print(end, "abcdef\n");
  Print(end, "the end");
  end.Close();
  log->Drain();
  EXPECT_THAT(folder.Read("rank-0.log"),
              AllOf(StartsWith("0123456789\n[log cut here"),
                    HasSubstr("cap of 10 bytes")));
  EXPECT_EQ(log->LastLine(), "the end");
}

TEST(RankLogTest, LogThatCannotBeOpenedIsAnErrorWithItsPath) {
  EXPECT_THAT(RankLog::Open("/proc/nothing/rank-0.log", 10),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("/proc/nothing/rank-0.log")));
}

}  // namespace
}  // namespace lockstep
