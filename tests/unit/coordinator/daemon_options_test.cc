#include "coordinator/daemon_options.h"

#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

DaemonFlags Flags() {
  DaemonFlags flags;
  flags.store = "sqlite:/tmp/state.db";
  flags.job_root = "/tmp/jobs/";
  return flags;
}

TEST(DaemonOptionsTest, FlagsOfALocalDaemonAreTaken) {
  DaemonFlags flags = Flags();
  flags.metrics = "127.0.0.1:0";
  flags.log_format = "json";
  ASSERT_OK_AND_ASSIGN(const DaemonOptions options, CheckFlags(flags));
  EXPECT_EQ(options.listen.ToString(), "127.0.0.1:7700");
  EXPECT_EQ(options.store_path, "/tmp/state.db");
  EXPECT_EQ(options.job_root, "/tmp/jobs");
  EXPECT_EQ(options.metrics->port, 0);
  EXPECT_EQ(options.log_format, LogFormat::kJson);
}

TEST(DaemonOptionsTest, OtherHostsNeedInsecureSaidAloud) {
  DaemonFlags flags = Flags();
  flags.listen = "0.0.0.0:7700";
  EXPECT_THAT(CheckFlags(flags), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("--insecure")));
  flags.insecure = true;
  EXPECT_THAT(CheckFlags(flags), IsOk());
}

TEST(DaemonOptionsTest, RelativeJobRootIsMadeAbsolute) {
  DaemonFlags flags = Flags();
  flags.job_root = "jobs";
  ASSERT_OK_AND_ASSIGN(const DaemonOptions options, CheckFlags(flags));
  EXPECT_EQ(options.job_root.front(), '/');
}

struct BadFlags {
  const char* name;
  void (*change)(DaemonFlags&);
  absl::StatusCode code;
  const char* phrase;
};

class DaemonOptionsBadTest : public ::testing::TestWithParam<BadFlags> {};

TEST_P(DaemonOptionsBadTest, IsRefusedByName) {
  DaemonFlags flags = Flags();
  GetParam().change(flags);
  EXPECT_THAT(CheckFlags(flags),
              StatusIs(GetParam().code, HasSubstr(GetParam().phrase)));
}

INSTANTIATE_TEST_SUITE_P(
    All, DaemonOptionsBadTest,
    ::testing::Values(
        BadFlags{"Http", [](DaemonFlags& f) { f.http = "127.0.0.1:1"; },
                 absl::StatusCode::kUnimplemented, "--http is not built yet"},
        BadFlags{"Config", [](DaemonFlags& f) { f.config = "x.yaml"; },
                 absl::StatusCode::kUnimplemented, "--config"},
        BadFlags{"Etcd", [](DaemonFlags& f) { f.store = "etcd:h:1"; },
                 absl::StatusCode::kUnimplemented, "etcd: is not built yet"},
        BadFlags{"Tls", [](DaemonFlags& f) { f.tls_ca = "ca"; },
                 absl::StatusCode::kUnimplemented, "--tls-ca"},
        BadFlags{"Token", [](DaemonFlags& f) { f.token_file = "t"; },
                 absl::StatusCode::kUnimplemented, "--token-file"},
        BadFlags{"Store", [](DaemonFlags& f) { f.store = "state.db"; },
                 absl::StatusCode::kInvalidArgument, "sqlite:"},
        BadFlags{"Listen", [](DaemonFlags& f) { f.listen = "nowhere"; },
                 absl::StatusCode::kInvalidArgument, "--listen"},
        BadFlags{"Metrics", [](DaemonFlags& f) { f.metrics = "a:99999"; },
                 absl::StatusCode::kInvalidArgument, "--metrics"},
        BadFlags{"Format", [](DaemonFlags& f) { f.log_format = "xml"; },
                 absl::StatusCode::kInvalidArgument, "text or json"},
        BadFlags{"JobRoot", [](DaemonFlags& f) { f.job_root = ""; },
                 absl::StatusCode::kInvalidArgument, "--job-root"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep
