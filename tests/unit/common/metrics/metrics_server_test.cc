#include "common/metrics/metrics_server.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

class MetricsServerTest : public ::testing::Test {
 protected:
  MetricsServer::Options Options() {
    MetricsServer::Options options;
    options.address = {"127.0.0.1", 0};
    options.registry = &metrics_;
    options.collect = [this] {
      metrics_.Increment(metric_names::kWorkerHeartbeats, {});
    };
    options.ready = [this] { return ready_; };
    return options;
  }

  MetricsRegistry metrics_;
  absl::Status ready_ = absl::OkStatus();
};

TEST_F(MetricsServerTest, MetricsAreCollectedForEachScrape) {
  ASSERT_OK_AND_ASSIGN(auto server, MetricsServer::Start(Options()));
  ASSERT_GT(server->address().port, 0);
  httplib::Client client("127.0.0.1", server->address().port);
  EXPECT_THAT(client.Get("/metrics")->body,
              HasSubstr("lockstep_worker_heartbeats_total 1"));
  EXPECT_THAT(client.Get("/metrics")->body,
              HasSubstr("lockstep_worker_heartbeats_total 2"));
}

TEST_F(MetricsServerTest, ReadinessSaysWhyNotWhileHealthStaysGood) {
  ready_ = absl::UnavailableError("the coordinator is away");
  ASSERT_OK_AND_ASSIGN(auto server, MetricsServer::Start(Options()));
  httplib::Client client("127.0.0.1", server->address().port);
  const auto answer = client.Get("/readyz");
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->body, "the coordinator is away\n");
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  EXPECT_EQ(client.Get("/other")->status, 404);
}

TEST_F(MetricsServerTest, PortInUseIsAnError) {
  ASSERT_OK_AND_ASSIGN(auto server, MetricsServer::Start(Options()));
  MetricsServer::Options second = Options();
  second.address = server->address();
  EXPECT_THAT(MetricsServer::Start(second),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr(server->address().ToString() +
                                 ": Address already in use")));
}

TEST_F(MetricsServerTest, StoppingAtOnceDoesNotHang) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(auto server, MetricsServer::Start(Options()));
  }
}

}  // namespace
}  // namespace lockstep
