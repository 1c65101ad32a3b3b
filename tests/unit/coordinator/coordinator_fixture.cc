#include "tests/unit/coordinator/coordinator_fixture.h"

#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "common/log.h"

namespace lockstep {
namespace testing {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoSeconds(kPatience));
  context.set_wait_for_ready(true);
}

// Asks until `holds` says yes, for at most kPatience.
bool Poll(const std::function<bool()>& holds) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (!holds()) {
    if (absl::Now() > deadline) return false;
  }
  return true;
}

}  // namespace

CoordinatorFixture::CoordinatorFixture() {
  options_.listen = {"127.0.0.1", 0};
  options_.store_path = dir_.File("state/state.db");
  options_.job_root = dir_.File("jobs");
  // A test's clock leaps, which is no pause.
  options_.gangs.longest_tick_gap = absl::InfiniteDuration();
  Start();
}

void CoordinatorFixture::Start() {
  auto coordinator = Coordinator::Start(options_, clock_);
  CHECK(coordinator.ok()) << coordinator.status();
  coordinator_ = *std::move(coordinator);
  options_.listen = coordinator_->address();
  jobs_ = v1::JobService::NewStub(
      grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
}

void CoordinatorFixture::Stop() { coordinator_.reset(); }

grpc::Status CoordinatorFixture::TrySubmit(const v1::SubmitRequest& request,
                                           v1::SubmitResponse* response) {
  grpc::ClientContext context;
  SetDeadline(context);
  return jobs_->Submit(&context, request, response);
}

std::string CoordinatorFixture::Submit(int64_t devices,
                                       const std::string& name) {
  v1::SubmitRequest request;
  request.set_request_id("request-" + std::to_string(next_request_++));
  *request.mutable_spec() = TestSpec(name);
  v1::DeviceRange& range =
      *request.mutable_spec()->mutable_resources()->mutable_devices();
  range.set_min(devices);
  range.set_max(devices);
  v1::SubmitResponse response;
  const grpc::Status status = TrySubmit(request, &response);
  CHECK(status.ok()) << status.error_message();
  return response.job_id();
}

v1::JobInfo CoordinatorFixture::Job(const std::string& id) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetJobRequest request;
  request.set_job(id);
  v1::JobInfo info;
  const grpc::Status status = jobs_->GetJob(&context, request, &info);
  CHECK(status.ok()) << status.error_message();
  return info;
}

v1::JobReport CoordinatorFixture::Report(const std::string& id) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetJobRequest request;
  request.set_job(id);
  v1::JobReport report;
  const grpc::Status status = jobs_->GetReport(&context, request, &report);
  CHECK(status.ok()) << status.error_message();
  return report;
}

grpc::Status CoordinatorFixture::Cancel(const std::string& id,
                                        v1::JobInfo* info) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::CancelJobRequest request;
  request.set_job(id);
  request.set_reason("by user");
  v1::JobInfo answer;
  const grpc::Status status = jobs_->CancelJob(&context, request, &answer);
  if (info != nullptr) *info = answer;
  return status;
}

std::vector<v1::JobUpdate> CoordinatorFixture::WatchUntil(
    const std::string& id, int64_t after_sequence,
    const std::function<bool(const v1::JobUpdate&)>& wanted) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::WatchJobRequest request;
  request.set_job(id);
  request.set_after_sequence(after_sequence);
  const auto reader = jobs_->WatchJob(&context, request);
  std::vector<v1::JobUpdate> updates;
  v1::JobUpdate update;
  while (reader->Read(&update)) {
    updates.push_back(update);
    if (wanted(update)) {
      context.TryCancel();
      reader->Finish();
      return updates;
    }
  }
  const grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return updates;
}

v1::JobInfo CoordinatorFixture::AwaitState(const std::string& id,
                                           JobState state) {
  const auto updates = WatchUntil(id, 0, [&](const v1::JobUpdate& update) {
    return update.has_job() && update.job().state() == state;
  });
  CHECK(!updates.empty()) << "nothing to watch";
  const v1::JobInfo& last = updates.back().job();
  EXPECT_EQ(last.state(), state) << last.ShortDebugString();
  return last;
}

std::string CoordinatorFixture::AwaitReason(const std::string& id,
                                            const std::string& phrase) {
  const auto updates = WatchUntil(id, 0, [&](const v1::JobUpdate& update) {
    return update.has_job() && absl::StrContains(update.job().reason(), phrase);
  });
  return updates.empty() ? "" : updates.back().job().reason();
}

std::vector<v1::CheckpointInfo> CoordinatorFixture::Checkpoints(
    const std::string& id) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetJobRequest request;
  request.set_job(id);
  v1::ListCheckpointsResponse response;
  const grpc::Status status =
      jobs_->ListCheckpoints(&context, request, &response);
  CHECK(status.ok()) << status.error_message();
  return {response.checkpoints().begin(), response.checkpoints().end()};
}

std::vector<std::string> CoordinatorFixture::EventTypes(const std::string& id) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetJobRequest request;
  request.set_job(id);
  v1::ListEventsResponse response;
  const grpc::Status status = jobs_->ListEvents(&context, request, &response);
  CHECK(status.ok()) << status.error_message();
  std::vector<std::string> types;
  for (const v1::Event& event : response.events()) {
    types.push_back(event.type());
  }
  return types;
}

bool CoordinatorFixture::AwaitWorkerState(const std::string& worker,
                                          const std::string& state) {
  return Poll([&] {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::ListWorkersResponse response;
    jobs_->ListWorkers(&context, {}, &response);
    for (const v1::WorkerInfo& info : response.workers()) {
      if (info.name() == worker && info.state() == state) return true;
    }
    return false;
  });
}

bool CoordinatorFixture::AwaitFreeDevices(int64_t count) {
  return Poll([&] {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::ServerInfo info;
    jobs_->GetServerInfo(&context, {}, &info);
    return info.devices_free() == count;
  });
}

}  // namespace testing
}  // namespace lockstep
