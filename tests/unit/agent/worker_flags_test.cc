#include "worker/worker_flags.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

absl::StatusOr<std::variant<WorkerFlags, FlagsText>> Parse(
    std::vector<std::string> more) {
  std::vector<std::string> arguments = {"lockstep-worker", "--job-root",
                                        "/jobs", "--data-root", "/data"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) {
    pointers.push_back(argument.c_str());
  }
  return ParseWorkerFlags(static_cast<int>(pointers.size()), pointers.data());
}

TEST(WorkerFlagsTest, FlagsAreTyped) {
  ASSERT_OK_AND_ASSIGN(
      const auto parsed,
      Parse({"--coordinator", "127.0.0.1:7700,localhost:7701", "--devices",
             "cpu:2", "--memory-per-device", "1GiB", "--name", "a-1",
             "--metrics", "0.0.0.0:0", "--log-format", "json"}));
  const WorkerFlags& flags = std::get<WorkerFlags>(parsed);
  ASSERT_EQ(flags.coordinators.size(), 2u);
  EXPECT_EQ(flags.coordinators[1].port, 7701);
  EXPECT_EQ(flags.devices, "cpu:2");
  EXPECT_EQ(flags.memory_per_device_bytes, uint64_t{1} << 30);
  EXPECT_EQ(flags.name, "a-1");
  EXPECT_EQ(flags.metrics->host, "0.0.0.0");
  EXPECT_EQ(flags.log_format, LogFormat::kJson);
  EXPECT_EQ(flags.threads, std::nullopt);
}

TEST(WorkerFlagsTest, CoordinatorOffThisHostNeedsInsecure) {
  EXPECT_THAT(Parse({"--coordinator", "10.0.0.5:7700"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("say --insecure")));
  EXPECT_OK(Parse({"--coordinator", "10.0.0.5:7700", "--insecure"}));
}

TEST(WorkerFlagsTest, TlsIsNotBuiltYet) {
  EXPECT_THAT(
      Parse({"--coordinator", "127.0.0.1:1", "--tls-ca", "ca.pem"}),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("not built yet")));
}

struct BadFlag {
  std::vector<std::string> arguments;
  std::string phrase;
};

class BadWorkerFlagTest : public ::testing::TestWithParam<BadFlag> {};

TEST_P(BadWorkerFlagTest, IsRefusedByName) {
  EXPECT_THAT(Parse(GetParam().arguments),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(GetParam().phrase)));
}

INSTANTIATE_TEST_SUITE_P(
    Flags, BadWorkerFlagTest,
    ::testing::Values(
        BadFlag{{}, "--coordinator"},
        BadFlag{{"--coordinator", "nowhere"}, "'nowhere' has no port"},
        BadFlag{{"--coordinator", "127.0.0.1:1", "--colour", "red"},
                "--colour"},
        BadFlag{{"--coordinator", "127.0.0.1:1", "--name", "a/b"}, "--name"},
        BadFlag{{"--coordinator", "127.0.0.1:1", "--memory-per-device", "1Gb"},
                "--memory-per-device"},
        BadFlag{{"--coordinator", "127.0.0.1:1", "--threads", "-2"},
                "--threads"},
        BadFlag{{"--coordinator", "127.0.0.1:1", "--log-format", "xml"},
                "--log-format"}));

TEST(WorkerFlagsTest, HelpIsText) {
  ASSERT_OK_AND_ASSIGN(const auto parsed, Parse({"--help"}));
  EXPECT_THAT(std::get<FlagsText>(parsed).text, HasSubstr("--coordinator"));
}

}  // namespace
}  // namespace lockstep
