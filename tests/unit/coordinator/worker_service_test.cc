// WorkerService without a server; sessions are tested in coordinator_test.cc.
#include "coordinator/rpc/worker_service.h"

#include <memory>
#include <string>

#include "common/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/coordinator/fake_job_store.h"

namespace lockstep {
namespace testing {
namespace {

using ::testing::HasSubstr;

class WorkerServiceTest : public ::testing::Test {
 protected:
  WorkerServiceTest() {
    auto jobs = JobTable::Load(store_, StoredState(), clock_,
                               {.job_root = dir_.File("jobs"),
                                .history = {},
                                .on_move = nullptr,
                                .random_suffix = nullptr});
    CHECK(jobs.ok()) << jobs.status();
    jobs_ = *std::move(jobs);
    supervisor_ = std::make_unique<GangSupervisor>(
        GangSupervisor::Deps{.jobs = *jobs_,
                             .workers = workers_,
                             .rendezvous = rendezvous_,
                             .clock = clock_,
                             .metrics = metrics_,
                             .post = [](auto) {},
                             .post_blocking = [](auto) {}},
        GangSupervisor::Options());
    service_ = std::make_unique<WorkerServiceImpl>(
        WorkerServiceImpl::Deps{.supervisor = *supervisor_,
                                .loop = *loop_,
                                .rendezvous = rendezvous_,
                                .store = store_,
                                .metrics = metrics_});
  }

  TempDir dir_;
  FakeClock clock_;
  MetricsRegistry metrics_;
  FakeJobStore store_;
  std::unique_ptr<SerialLoop> loop_ =
      SerialLoop::Start(clock_, absl::Minutes(1), [] {});
  std::unique_ptr<JobTable> jobs_;
  WorkerRegistry workers_{clock_, {}};
  RendezvousStore rendezvous_{store_, clock_};
  std::unique_ptr<GangSupervisor> supervisor_;
  std::unique_ptr<WorkerServiceImpl> service_;
};

TEST_F(WorkerServiceTest, KeyThatCanNotBeStoredYetIsToBeSentAgain) {
  v1::StoreSetRequest request;
  request.mutable_gang()->set_job("kjv-1a2b");
  request.mutable_gang()->set_generation(1);
  request.set_secret("secret");
  request.set_key("k");
  request.set_value("v");
  rendezvous_.Open(request.gang(), "secret");
  v1::StoreSetResponse response;
  for (const absl::Status& trouble :
       {absl::ResourceExhaustedError("the disk is full"),
        absl::DeadlineExceededError("slow"), absl::DataLossError("damaged")}) {
    store_.trouble = trouble;
    grpc::ServerContext context;
    const grpc::Status status =
        service_->StoreSet(&context, &request, &response);
    EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE) << trouble;
    EXPECT_THAT(status.error_message(),
                HasSubstr(std::string(trouble.message())));
  }
  store_.trouble = absl::OkStatus();
  grpc::ServerContext context;
  EXPECT_TRUE(service_->StoreSet(&context, &request, &response).ok());
}

}  // namespace
}  // namespace testing
}  // namespace lockstep
