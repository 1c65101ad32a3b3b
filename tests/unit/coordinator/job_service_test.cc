// JobService's and WorkerService's other calls, over gRPC.
#include <filesystem>
#include <fstream>

#include "common/log.h"
#include "gmock/gmock.h"
#include "tests/unit/coordinator/coordinator_fixture.h"

namespace lockstep {
namespace testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobServiceTest : public CoordinatorFixture {
 protected:
  // A job that has trained to step 10 with a committed checkpoint.
  std::string Trained(FakeWorker& worker, const std::string& name = "tiny") {
    const std::string id = Submit(1, name);
    const v1::GangId gang = worker.StartGang().gang();
    worker.Step(gang, 10);
    worker.Checkpoint(gang, 10);
    CHECK(
        worker.Await(v1::CoordinatorMessage::kCheckpointCommitted).has_value())
        << "not committed";
    worker.Exited(gang, 0);
    AwaitState(id, v1::JOB_STATE_SUCCEEDED);
    return id;
  }
  v1::SubmitRequest Request() {
    v1::SubmitRequest request;
    request.set_request_id("r" + std::to_string(next_request_++));
    *request.mutable_spec() = TestSpec();
    return request;
  }
};

TEST_F(JobServiceTest, RefusedSpecSaysWhy) {
  v1::SubmitRequest request = Request();
  request.mutable_spec()->mutable_train()->set_global_batch(0);
  v1::SubmitResponse response;
  grpc::Status status = TrySubmit(request, &response);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("train.global_batch"));
  request = Request();
  request.mutable_spec()->mutable_model()->set_from("dir");
  status = TrySubmit(request, &response);
  EXPECT_EQ(status.error_code(), grpc::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("not built yet"));
  request = Request();
  request.clear_request_id();
  EXPECT_EQ(TrySubmit(request, &response).error_code(), grpc::INVALID_ARGUMENT);
}

TEST_F(JobServiceTest, JobThatFitsNoLimitOfItsOwnIsRefused) {
  v1::SubmitRequest request = Request();
  request.mutable_spec()
      ->mutable_resources()
      ->mutable_memory_per_device()
      ->set_bytes(5000);
  v1::SubmitResponse response;
  const grpc::Status status = TrySubmit(request, &response);
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("no layout fits"), HasSubstr("4.88 KiB")));
}

TEST_F(JobServiceTest, RunIsRefusedWhatItsClusterCannotRun) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  v1::SubmitRequest request = Request();
  request.set_refuse_if_pending(true);
  // A value: `request` is made anew below.
  v1::DeviceRange devices;
  devices.set_min(2);
  devices.set_max(2);
  *request.mutable_spec()->mutable_resources()->mutable_devices() = devices;
  v1::SubmitResponse response;
  const grpc::Status status = TrySubmit(request, &response);
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(),
              HasSubstr("needs 2 devices, the cluster has 1"));
  // With fewer by hand it may leave some alone.
  request = Request();
  request.set_refuse_if_pending(true);
  *request.mutable_spec()->mutable_resources()->mutable_devices() = devices;
  request.mutable_spec()->mutable_parallel()->set_dp(1);
  EXPECT_TRUE(TrySubmit(request, &response).ok());
}

TEST_F(JobServiceTest, ResumedJobStartsFromTheNewestCheckpoint) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string source = Trained(worker);
  v1::SubmitRequest request = Request();
  request.set_resume_from("tiny");
  request.mutable_spec()->mutable_train()->set_steps(20);
  v1::SubmitResponse response;
  ASSERT_TRUE(TrySubmit(request, &response).ok());
  const v1::PrepareGang prepare = worker.StartGang();
  EXPECT_EQ(prepare.ranks(0).resume_checkpoint(),
            dir_.File("jobs/" + source + "/step-10.g1"));
  EXPECT_TRUE(prepare.ranks(0).resume_other_job());
}

TEST_F(JobServiceTest, ResumeThatDoesNotMatchIsRefused) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  Trained(worker);
  v1::SubmitRequest request = Request();
  request.set_resume_from("tiny");
  request.mutable_spec()->mutable_model()->set_layers(3);
  v1::SubmitResponse response;
  grpc::Status status = TrySubmit(request, &response);
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("layers"));
  request = Request();
  request.set_resume_from("nothing");
  EXPECT_EQ(TrySubmit(request, &response).error_code(), grpc::NOT_FOUND);
}

TEST_F(JobServiceTest, ResumeWithoutACheckpointIsRefused) {
  const std::string id = Submit(1);
  v1::SubmitRequest request = Request();
  request.set_resume_from(id);
  v1::SubmitResponse response;
  const grpc::Status status = TrySubmit(request, &response);
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("no committed checkpoint"));
}

TEST_F(JobServiceTest, GenerateRunsOnTheSourcesModelAndStreamsItsOutput) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string source = Trained(worker);
  v1::SubmitRequest request;
  request.set_request_id("generate");
  request.mutable_spec()->set_name("anything");
  request.mutable_spec()->mutable_action()->set_source_job(source);
  request.mutable_spec()->mutable_action()->mutable_generate()->set_prompt(
      "In the");
  v1::SubmitResponse response;
  const grpc::Status status = TrySubmit(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const std::string id = response.job_id();
  EXPECT_THAT(id, HasSubstr("tiny-generate-"));
  const v1::PrepareGang prepare = worker.StartGang();
  const v1::JobSpec& spec = prepare.ranks(0).spec();
  EXPECT_EQ(spec.model().layers(), 2);
  EXPECT_EQ(spec.action().checkpoint(),
            dir_.File("jobs/" + source + "/step-10.g1"));
  EXPECT_EQ(spec.action().generate().prompt(), "In the");
  EXPECT_EQ(spec.action().generate().max_tokens(), 100);
  v1::RankReport output;
  output.mutable_output()->set_data(" beginning");
  worker.Report(prepare.gang(), 0, output);
  worker.Exited(prepare.gang(), 0);
  std::string text;
  for (const auto& update :
       WatchUntil(id, 0, [](const auto&) { return false; })) {
    text += update.output().data();
  }
  EXPECT_EQ(text, " beginning");
  // Hidden, and the name still means the trained job.
  grpc::ClientContext context;
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(jobs_->ListJobs(&context, {}, &jobs).ok());
  ASSERT_EQ(jobs.jobs_size(), 1);
  EXPECT_EQ(jobs.jobs(0).id(), source);
  EXPECT_EQ(Job("tiny").id(), source);
}

TEST_F(JobServiceTest, ExportIsNotBuiltYet) {
  v1::SubmitRequest request = Request();
  request.mutable_spec()->mutable_action()->set_source_job("x");
  request.mutable_spec()->mutable_action()->mutable_export_()->set_to("/tmp");
  v1::SubmitResponse response;
  EXPECT_EQ(TrySubmit(request, &response).error_code(), grpc::UNIMPLEMENTED);
}

TEST_F(JobServiceTest, JobsAreListedNewestFirst) {
  const std::string a = Submit(1, "a");
  const std::string b = Submit(1, "b");
  grpc::ClientContext context;
  v1::ListJobsResponse response;
  ASSERT_TRUE(jobs_->ListJobs(&context, {}, &response).ok());
  ASSERT_EQ(response.jobs_size(), 2);
  EXPECT_EQ(response.jobs(0).id(), b);
  EXPECT_EQ(response.jobs(1).id(), a);
}

TEST_F(JobServiceTest, StepsComeInOrderAboveTheOneAskedFor) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  const v1::GangId gang = worker.StartGang().gang();
  int64_t last = 0;
  for (int step = 1; step <= 5; ++step) last = worker.Step(gang, step);
  ASSERT_TRUE(worker.AwaitAcknowledged(last));
  grpc::ClientContext context;
  v1::GetStepsRequest request;
  request.set_job(id);
  request.set_after_step(3);
  const auto reader = jobs_->GetSteps(&context, request);
  std::vector<int64_t> steps;
  v1::StepReport step;
  while (reader->Read(&step)) steps.push_back(step.step());
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_THAT(steps, ElementsAre(4, 5));
}

TEST_F(JobServiceTest, FollowedLogsEndWithTheJob) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  const std::string id = Submit(1);
  const v1::GangId gang = worker.StartGang().gang();
  dir_.Write("jobs/" + id + "/logs/g1/rank-0.log", "first\n");
  grpc::ClientContext context;
  v1::GetLogsRequest request;
  request.set_job(id);
  request.set_follow(true);
  const auto reader = jobs_->GetLogs(&context, request);
  v1::LogLine line;
  ASSERT_TRUE(reader->Read(&line));
  EXPECT_EQ(line.line(), "first");
  dir_.Write("jobs/" + id + "/logs/g1/rank-0.log", "first\nlast words");
  worker.Exited(gang, 0, v1::CAUSE_EXIT, "failed");
  ASSERT_TRUE(reader->Read(&line));
  EXPECT_EQ(line.line(), "last words");
  EXPECT_FALSE(reader->Read(&line));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(JobServiceTest, DeleteTakesAnEndedJobOnly) {
  const std::string id = Submit(1);
  v1::GetJobRequest request;
  request.set_job(id);
  v1::DeleteJobResponse response;
  {
    grpc::ClientContext context;
    EXPECT_EQ(jobs_->DeleteJob(&context, request, &response).error_code(),
              grpc::FAILED_PRECONDITION);
  }
  ASSERT_TRUE(Cancel(id).ok());
  {
    grpc::ClientContext context;
    EXPECT_TRUE(jobs_->DeleteJob(&context, request, &response).ok());
  }
  EXPECT_EQ(response.id(), id);
  grpc::ClientContext context;
  v1::JobInfo info;
  EXPECT_EQ(jobs_->GetJob(&context, request, &info).error_code(),
            grpc::NOT_FOUND);
}

TEST_F(JobServiceTest, RendezvousIsForTheNewestGangWithItsSecret) {
  FakeWorker worker("w0", "i1", 1);
  ASSERT_TRUE(worker.Connect(address()).has_value());
  Submit(1);
  const v1::PrepareGang prepare = worker.StartGang();
  const auto stub = v1::WorkerService::NewStub(
      grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  v1::StoreSetRequest set;
  *set.mutable_gang() = prepare.gang();
  set.set_secret(prepare.ranks(0).rendezvous_secret());
  set.set_key("k");
  set.set_value("v");
  v1::StoreSetResponse none;
  {
    grpc::ClientContext context;
    EXPECT_TRUE(stub->StoreSet(&context, set, &none).ok());
  }
  v1::StoreGetRequest get;
  *get.mutable_gang() = prepare.gang();
  get.set_secret(set.secret());
  get.add_keys("k");
  v1::StoreGetResponse got;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->StoreGet(&context, get, &got).ok());
    EXPECT_EQ(got.values(0), "v");
  }
  get.set_secret("guess");
  {
    grpc::ClientContext context;
    EXPECT_EQ(stub->StoreGet(&context, get, &got).error_code(),
              grpc::PERMISSION_DENIED);
  }
  get.mutable_gang()->set_generation(0);
  grpc::ClientContext context;
  EXPECT_EQ(stub->StoreGet(&context, get, &got).error_code(), grpc::ABORTED);
}

TEST_F(JobServiceTest, PortInUseIsSaid) {
  Coordinator::Options second = options_;
  second.store_path = dir_.File("other/state.db");
  const auto started = Coordinator::Start(second, clock_);
  EXPECT_EQ(started.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(started.status().message()),
              AllOf(HasSubstr(address()), HasSubstr("in use")));
}

}  // namespace
}  // namespace testing
}  // namespace lockstep
