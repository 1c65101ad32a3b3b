#include "common/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lockstep {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// What `write` puts on file descriptor 2.
template <typename F>
std::string CaptureStderr(F write_lines) {
  std::string path = ::testing::TempDir() + "log_test.XXXXXX";
  const int file = mkstemp(path.data());
  const int saved = dup(STDERR_FILENO);
  dup2(file, STDERR_FILENO);
  write_lines();
  dup2(saved, STDERR_FILENO);
  close(saved);
  close(file);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  return text.str();
}

class LogTest : public ::testing::Test {
 protected:
  void TearDown() override {
    SetLogFormat(LogFormat::kText);
    SetLogThreshold(LogLevel::kInfo);
    SetLogContext("", "");
  }
};

TEST_F(LogTest, TextLineCarriesLevelProgramAndContext) {
  SetLogContext("lockstep-rank", "job=kjv-1a2b rank=0");
  const std::string line =
      CaptureStderr([] { LOG(WARNING) << "loss is " << 2.5; });
  EXPECT_THAT(line, EndsWith("Z warning lockstep-rank [job=kjv-1a2b rank=0] "
                             "loss is 2.5\n"));
}

TEST_F(LogTest, NewlinesInTextAreEscaped) {
  const std::string line = CaptureStderr([] { LOG(INFO) << "a\nb\x1b[31m"; });
  EXPECT_THAT(line, EndsWith("a\\nb\\u001b[31m\n"));
}

TEST_F(LogTest, JsonLineIsReadBackByAParser) {
  SetLogFormat(LogFormat::kJson);
  SetLogContext("lockstep-rank", "job=kjv-1a2b rank=3");
  const std::string message = "quote \" backslash \\ tab\t nl\n é 日 \x01 end";
  const std::string line = CaptureStderr([&] {
    LOG(ERROR) << message << "\xff"
               << "\xc3(";
  });
  EXPECT_THAT(line, EndsWith("}\n"));
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["message"], message + "\xef\xbf\xbd\xef\xbf\xbd(");
  EXPECT_EQ(json["level"], "error");
  EXPECT_EQ(json["program"], "lockstep-rank");
  EXPECT_EQ(json["job"], "kjv-1a2b");
  EXPECT_EQ(json["rank"], "3");
  EXPECT_THAT(json["source"], StartsWith("log_test.cc:"));
}

TEST_F(LogTest, LinesBelowTheThresholdAreDropped) {
  SetLogThreshold(LogLevel::kError);
  EXPECT_THAT(CaptureStderr([] { LOG(WARNING) << "hidden"; }), IsEmpty());
  EXPECT_THAT(CaptureStderr([] { LOG(ERROR) << "shown"; }), HasSubstr("shown"));
}

TEST_F(LogTest, CheckThatHoldsPrintsNothing) {
  EXPECT_THAT(CaptureStderr([] { CHECK(1 + 1 == 2) << "arithmetic"; }),
              IsEmpty());
}

TEST(LogDeathTest, CheckThatFailsAbortsWithConditionAndPlace) {
  const int two = 2;
  EXPECT_DEATH(CHECK(two == 3) << "two is " << two,
               "log_test.cc:[0-9]+: check failed: two == 3 two is 2");
}

}  // namespace
}  // namespace lockstep
