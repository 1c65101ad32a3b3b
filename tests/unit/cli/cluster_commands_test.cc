// The verbs that talk to a coordinator, against a fake one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "cli/coordinator_client.h"
#include "nlohmann/json.hpp"
#include "tests/testing/temp_dir.h"
#include "tests/unit/cli/fake_job_service.h"
#include "tests/unit/cli/run_command_line.h"
#include "tests/unit/cli/sample_job.h"

namespace lockstep {
namespace {

using ::nlohmann::ordered_json;
using testing::CommandResult;
using ::testing::ElementsAre;
using testing::FakeJobService;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kSampleJob;
using ::testing::Not;
using testing::RunCommand;
using ::testing::SizeIs;
using testing::TempDir;

class ClusterCommandsTest : public ::testing::Test {
 protected:
  CommandResult Run(std::vector<std::string> arguments) {
    return RunCommand(arguments,
                      {{"LOCKSTEP_COORDINATOR", service_.address()}});
  }
  std::string JobFile() { return folder_.Write("job.yaml", kSampleJob); }

  void AddStep(const std::string& id, int64_t step) {
    v1::JobUpdate update;
    update.mutable_step()->set_step(step);
    update.mutable_step()->set_loss(3.0 / static_cast<double>(step));
    update.mutable_step()->set_seconds(0.5);
    update.mutable_step()->set_tokens(100);
    service_.AddUpdate(id, update);
  }

  TempDir folder_;
  FakeJobService service_;
};

TEST_F(ClusterCommandsTest, JobsAsJsonHaveTheDocumentedKeys) {
  v1::JobInfo& job = service_.AddJob("kjv-1", v1::JOB_STATE_PENDING);
  job.set_reason("waits for 2 devices");
  job.set_steps(400);
  job.set_devices(2);
  const CommandResult result = Run({"get", "jobs", "-o", "json"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_EQ(ordered_json::parse(result.out).dump(),
            R"([{"id":"kjv-1","name":"kjv","state":"PENDING",)"
            R"("reason":"waits for 2 devices","step":"0","steps":"400",)"
            R"("devices":"2"}])");
}

TEST_F(ClusterCommandsTest, JobsAsTableNamesAndYaml) {
  service_.AddJob("kjv-1", v1::JOB_STATE_RUNNING);
  service_.AddJob("kjv-2", v1::JOB_STATE_FAILED);
  EXPECT_EQ(Run({"get", "jobs", "-o", "name"}).out, "job/kjv-2\njob/kjv-1\n");
  EXPECT_EQ(Run({"get", "job", "kjv-1", "-o", "name"}).out, "job/kjv-1\n");
  EXPECT_THAT(Run({"get", "jobs"}).out,
              HasSubstr("ID     NAME  STATE    STEP"));
  EXPECT_THAT(Run({"get", "jobs", "-o", "wide"}).out, HasSubstr("SUBMITTED"));
  EXPECT_THAT(Run({"get", "jobs", "-o", "yaml"}).out,
              HasSubstr("- id: kjv-2\n  name: kjv\n"));
}

TEST_F(ClusterCommandsTest, EmptyListsAreEmptyArrays) {
  EXPECT_EQ(Run({"get", "jobs", "-o", "json"}).out, "[]\n");
  EXPECT_EQ(Run({"get", "workers", "-o", "json"}).out, "[]\n");
  EXPECT_EQ(Run({"get", "events", "-o", "json"}).out, "[]\n");
}

TEST_F(ClusterCommandsTest, ActionsAreHiddenWithoutAll) {
  service_.AddJob("kjv-1", v1::JOB_STATE_SUCCEEDED);
  service_.AddJob("kjv-2", v1::JOB_STATE_SUCCEEDED)
      .mutable_spec()
      ->mutable_action()
      ->mutable_generate();
  EXPECT_EQ(Run({"get", "jobs", "-o", "name"}).out, "job/kjv-1\n");
  EXPECT_EQ(Run({"get", "jobs", "--all", "-o", "name"}).out,
            "job/kjv-2\njob/kjv-1\n");
}

TEST_F(ClusterCommandsTest, WorkersCheckpointsAndEventsHaveTheDocumentedKeys) {
  service_.AddJob("kjv-1", v1::JOB_STATE_RUNNING);
  v1::WorkerInfo& worker = *service_.workers.add_workers();
  worker.set_name("w");
  worker.set_state("READY");
  worker.set_devices(2);
  v1::CheckpointInfo& checkpoint = *service_.checkpoints.add_checkpoints();
  checkpoint.set_path("/jobs/kjv-1/step-100.g1");
  checkpoint.set_step(100);
  v1::Event& event = *service_.events.add_events();
  event.set_job("kjv-1");
  event.set_type("submitted");
  event.mutable_time()->set_seconds(1);
  EXPECT_EQ(
      ordered_json::parse(Run({"get", "workers", "-o", "json"}).out).dump(),
      R"([{"name":"w","state":"READY","address":"","devices":"2"}])");
  EXPECT_EQ(
      ordered_json::parse(Run({"get", "checkpoints", "kjv", "-o", "json"}).out)
          .dump(),
      R"([{"path":"/jobs/kjv-1/step-100.g1","step":"100",)"
      R"("generation":"0","bytes":"0"}])");
  EXPECT_EQ(Run({"get", "checkpoints", "kjv", "-o", "name"}).out,
            "checkpoint/step-100.g1\n");
  EXPECT_EQ(
      ordered_json::parse(Run({"get", "events", "-o", "json"}).out).dump(),
      R"([{"time":"1970-01-01T00:00:01Z","job":"kjv-1",)"
      R"("generation":"0","type":"submitted","message":""}])");
}

TEST_F(ClusterCommandsTest, StepsAreJsonLinesWithAllDigits) {
  service_.AddJob("kjv-1", v1::JOB_STATE_RUNNING);
  for (int i = 1; i <= 3; ++i) {
    service_.steps.emplace_back().set_step(i);
    service_.steps.back().set_loss(1.0 / 3.0);
  }
  const CommandResult result = Run({"get", "steps", "kjv-1", "--after", "1"});
  EXPECT_EQ(result.out,
            R"({"step":"2","loss":0.3333333333333333,"grad_norm":0.0,)"
            R"("learning_rate":0.0,"tokens":"0","seconds":0.0})"
            "\n"
            R"({"step":"3","loss":0.3333333333333333,"grad_norm":0.0,)"
            R"("learning_rate":0.0,"tokens":"0","seconds":0.0})"
            "\n");
}

TEST_F(ClusterCommandsTest, UnknownJobIsExitCode2AndNamed) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{
           {"get", "jobs", "nobody"},
           {"describe", "job", "nobody"},
           {"cancel", "nobody"},
           {"delete", "nobody"},
           {"logs", "nobody"},
           {"generate", "nobody"},
           {"evaluate", "nobody"},
           {"describe", "worker", "nobody"},
           {"wait", "nobody", "--for=failed"}}) {
    const CommandResult result = Run(arguments);
    EXPECT_EQ(result.code, 2) << arguments[0] << ": " << result;
    EXPECT_THAT(result.err, HasSubstr("nobody"));
  }
}

TEST_F(ClusterCommandsTest, WaitEndsByHowTheJobEnded) {
  service_.AddJob("good-1", v1::JOB_STATE_SUCCEEDED);
  service_.AddJob("bad-1", v1::JOB_STATE_FAILED);
  service_.AddJob("gone-1", v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(Run({"wait", "good-1", "--for=succeeded"}).code, 0);
  EXPECT_EQ(Run({"wait", "bad-1", "--for=failed"}).code, 0);
  EXPECT_EQ(Run({"wait", "bad-1", "--for=succeeded"}).code, 1);
  EXPECT_EQ(Run({"wait", "gone-1", "--for=succeeded"}).code, 4);
  EXPECT_EQ(Run({"wait", "good-1", "--for=failed"}).code, 1);
  EXPECT_EQ(Run({"wait", "good-1", "--for=finished"}).code, 2);
  EXPECT_EQ(Run({"wait", "good-1", "--for=failed", "--timeout", "x"}).code, 2);
}

TEST_F(ClusterCommandsTest, WaitThatRunsOutOfTimeIsExitCode5) {
  service_.AddJob("kjv-1", v1::JOB_STATE_RUNNING);
  service_.watch_hangs = true;
  const CommandResult result =
      Run({"wait", "kjv-1", "--for=succeeded", "--timeout", "100ms"});
  EXPECT_EQ(result.code, 5) << result;
  EXPECT_THAT(result.err, HasSubstr("was not SUCCEEDED within 100ms"));
}

TEST_F(ClusterCommandsTest, WaitForAStateOfNowLeavesTheStream) {
  service_.AddJob("kjv-1", v1::JOB_STATE_RUNNING);
  service_.watch_hangs = true;
  EXPECT_EQ(Run({"wait", "kjv-1", "--for=running"}).code, 0);
}

TEST_F(ClusterCommandsTest, WaitComparesAnEndedJobsEndStateOnly) {
  service_.AddJob("kjv-1", v1::JOB_STATE_FAILED);
  // What its history begins with.
  service_.AddState("kjv-1", v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Run({"wait", "kjv-1", "--for=running"}).code, 1);
  EXPECT_EQ(Run({"wait", "kjv-1", "--for=failed"}).code, 0);
}

TEST_F(ClusterCommandsTest, StreamThatIsOpenedAgainIsOfTheSameJob) {
  service_.AddJob("kjv-1", v1::JOB_STATE_RUNNING);
  service_.AddState("kjv-1", v1::JOB_STATE_SUCCEEDED);
  service_.watch_breaks = {1};
  const auto client =
      CoordinatorClient::Connect({.address = service_.address()});
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE(
      (*client)->Watch("kjv", [](const v1::JobUpdate&) { return true; }).ok());
  EXPECT_THAT(service_.streamed(), ElementsAre("kjv", "kjv-1"));
}

TEST_F(ClusterCommandsTest, LogsAreOfTheJobThatTheNameMeantAtFirst) {
  service_.AddJob("kjv-1", v1::JOB_STATE_RUNNING);
  service_.log_lines.emplace_back().set_line("line");
  service_.log_break_after = 1;
  service_.log_lines.emplace_back().set_line("last");
  EXPECT_EQ(Run({"logs", "kjv", "-f"}).code, 0);
  EXPECT_THAT(service_.streamed(), ElementsAre("kjv-1", "kjv-1"));
}

TEST_F(ClusterCommandsTest, DetachedSubmitPrintsTheId) {
  service_.submit_response.set_job_id("kjv-7");
  service_.submit_response.add_warnings("restart: accepted, but");
  const CommandResult result =
      Run({"submit", JobFile(), "--detach", "-o", "name", "--set",
           "train.steps=7", "--resume", "kjv-3"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_EQ(result.out, "job/kjv-7\n");
  EXPECT_THAT(result.err, HasSubstr("warning: restart: accepted, but"));
  ASSERT_THAT(service_.submits(), SizeIs(1));
  const v1::SubmitRequest request = service_.submits()[0];
  EXPECT_EQ(request.spec().train().steps(), 7);
  EXPECT_EQ(request.resume_from(), "kjv-3");
  EXPECT_FALSE(request.refuse_if_pending());
  // Paths start at the data root, which is not known here.
  EXPECT_EQ(request.spec().data().train().path(0), "kjv.txt");
}

TEST_F(ClusterCommandsTest, LostAnswerOfASubmitIsAskedForAgainByTheSameId) {
  service_.submit_response.set_job_id("kjv-7");
  service_.lost_submit_answers = 2;
  const CommandResult result = Run({"submit", JobFile(), "--detach"});
  EXPECT_EQ(result.code, 0) << result;
  ASSERT_THAT(service_.submits(), SizeIs(3));
  const std::string id = service_.submits()[0].request_id();
  EXPECT_THAT(id, SizeIs(26));
  EXPECT_EQ(service_.submits()[2].request_id(), id);
}

TEST_F(ClusterCommandsTest, RefusedSubmitIsExitCode2) {
  service_.submit_status = {grpc::StatusCode::FAILED_PRECONDITION,
                            "needs 3 GiB, no device has more than 1 GiB"};
  const CommandResult result = Run({"submit", JobFile(), "--detach"});
  EXPECT_EQ(result.code, 2) << result;
  EXPECT_THAT(result.err, HasSubstr("needs 3 GiB"));
}

TEST_F(ClusterCommandsTest, BadJobFileIsNotSubmitted) {
  const CommandResult result =
      Run({"submit", JobFile(), "--set", "model.heads=5", "--detach"});
  EXPECT_EQ(result.code, 2) << result;
  EXPECT_THAT(result.err, HasSubstr("model.heads"));
  EXPECT_THAT(service_.submits(), IsEmpty());
}

TEST_F(ClusterCommandsTest, FollowedSubmitShowsTheJobAndItsReport) {
  service_.submit_response.set_job_id("kjv-7");
  service_.AddJob("kjv-7", v1::JOB_STATE_PENDING);
  service_.AddState("kjv-7", v1::JOB_STATE_RUNNING);
  for (int i = 1; i <= 10; ++i) AddStep("kjv-7", i);
  v1::JobUpdate evaluation;
  evaluation.mutable_evaluation()->set_step(10);
  evaluation.mutable_evaluation()->set_loss(0.5);
  evaluation.mutable_evaluation()->set_bits_per_byte(1.5);
  service_.AddUpdate("kjv-7", evaluation);
  service_.AddState("kjv-7", v1::JOB_STATE_SUCCEEDED);
  service_.report.mutable_job()->set_id("kjv-7");
  service_.report.mutable_job()->set_state("SUCCEEDED");
  service_.report.mutable_progress()->set_step(10);
  service_.report.mutable_checkpoint()->set_path("/c");
  const CommandResult result = Run({"submit", JobFile()});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr("kjv-7: RUNNING\n"));
  EXPECT_THAT(result.err, HasSubstr("step 1/10  loss 3.0000  200 tokens/s"));
  EXPECT_THAT(result.err,
              HasSubstr("step 10: validation loss 0.5000, 1.5000 bits"));
  EXPECT_THAT(result.err, HasSubstr("kjv-7: SUCCEEDED after 10 steps\n"));
  EXPECT_THAT(result.err, HasSubstr("\n  ./lockstep get steps kjv-7\n"));
  EXPECT_THAT(result.err, HasSubstr("\n  ./lockstep generate kjv-7 --prompt"));
}

TEST_F(ClusterCommandsTest, FollowedSubmitEndsAsTheJobDoes) {
  service_.submit_response.set_job_id("kjv-7");
  service_.AddJob("kjv-7", v1::JOB_STATE_PENDING);
  service_.AddState("kjv-7", v1::JOB_STATE_FAILED, "rank 1: nan_loss");
  service_.report.mutable_job()->set_id("kjv-7");
  service_.report.mutable_job()->set_state("FAILED");
  service_.report.mutable_job()->set_reason("rank 1: nan_loss");
  const CommandResult result = Run({"submit", JobFile(), "-o", "json"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_EQ(ordered_json::parse(result.out)["job"]["state"], "FAILED");
  EXPECT_THAT(result.err, HasSubstr("FAILED: rank 1: nan_loss"));
}

TEST_F(ClusterCommandsTest, BrokenWatchStreamGoesOnWhereItWas) {
  service_.submit_response.set_job_id("kjv-7");
  service_.AddJob("kjv-7", v1::JOB_STATE_RUNNING);
  for (int i = 1; i <= 10; ++i) AddStep("kjv-7", i);
  service_.AddState("kjv-7", v1::JOB_STATE_SUCCEEDED);
  service_.report.mutable_job()->set_id("kjv-7");
  service_.watch_breaks = {4, 3};
  const CommandResult result = Run({"submit", JobFile()});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(service_.watched_after(), ElementsAre(0, 4, 7));
  // Every tenth is shown once.
  for (int i = 1; i <= 10; ++i) {
    const std::string line = absl::StrCat("\nstep ", i, "/10  ");
    const size_t at = result.err.find(line);
    EXPECT_NE(at, std::string::npos) << line << result;
    EXPECT_EQ(result.err.find(line, at + 1), std::string::npos) << line;
  }
}

TEST_F(ClusterCommandsTest, CtrlCOfAFollowedSubmitDetaches) {
  service_.submit_response.set_job_id("kjv-7");
  service_.AddJob("kjv-7", v1::JOB_STATE_RUNNING);
  service_.watch_hangs = true;
  std::thread user([this] {
    service_.watch_is_idle.WaitForNotification();
    raise(SIGINT);
  });
  const CommandResult result = Run({"submit", JobFile()});
  user.join();
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.err, HasSubstr("./lockstep logs kjv-7 -f"));
  EXPECT_THAT(service_.cancelled(), IsEmpty());
}

TEST_F(ClusterCommandsTest, LogsNameTheRankUnlessOneIsAskedFor) {
  service_.AddJob("kjv-1", v1::JOB_STATE_RUNNING);
  for (int rank = 0; rank < 2; ++rank) {
    service_.log_lines.emplace_back().set_rank(rank);
    service_.log_lines.back().set_line(absl::StrCat("hello from ", rank));
  }
  EXPECT_EQ(Run({"logs", "kjv-1"}).out,
            "rank 0 | hello from 0\nrank 1 | hello from 1\n");
  EXPECT_EQ(Run({"logs", "kjv-1", "--rank", "1"}).out, "hello from 1\n");
}

TEST_F(ClusterCommandsTest, FollowedLogsThatBreakGoOnWithoutRepeating) {
  service_.AddJob("kjv-1", v1::JOB_STATE_RUNNING);
  for (int i = 0; i < 4; ++i) {
    service_.log_lines.emplace_back().set_rank(i % 2);
    service_.log_lines.back().set_line(absl::StrCat("line ", i));
  }
  service_.log_break_after = 3;
  EXPECT_EQ(Run({"logs", "kjv-1", "-f"}).out,
            "rank 0 | line 0\nrank 1 | line 1\nrank 0 | line 2\n"
            "rank 1 | line 3\n");
}

TEST_F(ClusterCommandsTest, CancelAndDeleteSayWhatBecameOfTheJob) {
  service_.AddJob("kjv-1", v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Run({"cancel", "kjv"}).out, "job/kjv-1 CANCELLED\n");
  EXPECT_THAT(service_.cancelled(), ElementsAre("kjv-1"));
  EXPECT_EQ(Run({"delete", "kjv"}).out, "job/kjv-1 deleted\n");
}

TEST_F(ClusterCommandsTest, DescribeJobPrintsTheReport) {
  service_.AddJob("kjv-1", v1::JOB_STATE_FAILED)
      .mutable_spec()
      ->set_name("kjv");
  service_.report.mutable_job()->set_id("kjv-1");
  service_.report.mutable_job()->set_state("FAILED");
  v1::JobReport::Attempt& attempt = *service_.report.add_attempts();
  attempt.set_generation(1);
  attempt.set_outcome("failed");
  attempt.set_cause("signal");
  attempt.set_first_rank(1);
  attempt.set_worker("w2");
  attempt.set_message("killed by signal 9");
  const CommandResult text = Run({"describe", "job", "kjv-1"});
  EXPECT_EQ(text.code, 0) << text;
  EXPECT_THAT(text.out,
              HasSubstr("generation 1: failed, signal, first rank 1 on w2: "
                        "killed by signal 9"));
  const CommandResult json = Run({"describe", "job", "kjv-1", "-o", "json"});
  EXPECT_EQ(ordered_json::parse(json.out)["attempts"][0]["first_rank"], "1");
}

TEST_F(ClusterCommandsTest, TopShowsWorkersAndLiveJobs) {
  service_.AddJob("done-1", v1::JOB_STATE_SUCCEEDED);
  service_.AddJob("kjv-1", v1::JOB_STATE_RUNNING);
  service_.workers.add_workers()->set_name("worker-a");
  const CommandResult result = Run({"top"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.out, HasSubstr("worker-a"));
  EXPECT_THAT(result.out, HasSubstr("kjv-1"));
  EXPECT_THAT(result.out, Not(HasSubstr("done-1")));
}

TEST_F(ClusterCommandsTest, TopLeavesOutAJobThatWasDeletedMeanwhile) {
  service_.AddJob("kjv-1", v1::JOB_STATE_RUNNING);
  service_.AddJob("kjv-2", v1::JOB_STATE_RUNNING);
  service_.job_without_report = "kjv-1";
  const CommandResult result = Run({"top"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.out, HasSubstr("kjv-2"));
  EXPECT_THAT(result.out, Not(HasSubstr("kjv-1")));
}

TEST_F(ClusterCommandsTest, GenerateSubmitsAnActionAndPrintsItsBytes) {
  *service_.AddJob("kjv-1", v1::JOB_STATE_SUCCEEDED).mutable_spec() =
      testing::SampleJob();
  service_.submit_response.set_job_id("act-1");
  service_.AddJob("act-1", v1::JOB_STATE_RUNNING);
  for (const char* piece : {" he", "\xc3", "\xa9"}) {
    v1::JobUpdate update;
    update.mutable_output()->set_data(piece);
    service_.AddUpdate("act-1", update);
  }
  service_.AddState("act-1", v1::JOB_STATE_SUCCEEDED);
  const CommandResult result =
      Run({"generate", "kjv", "--prompt", "And", "--max-tokens", "3",
           "--temperature", "0", "--top-k", "0", "--seed", "9"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_EQ(result.out, "And he\xc3\xa9");
  ASSERT_THAT(service_.submits(), SizeIs(1));
  const v1::SubmitRequest request = service_.submits()[0];
  const v1::Action& action = request.spec().action();
  EXPECT_EQ(action.source_job(), "kjv-1");
  EXPECT_EQ(action.generate().prompt(), "And");
  EXPECT_EQ(action.generate().max_tokens(), 3);
  EXPECT_TRUE(action.generate().has_temperature());
  EXPECT_TRUE(action.generate().has_top_k());
  EXPECT_EQ(action.generate().seed(), 9u);
  EXPECT_EQ(request.spec().model().layers(), 4);
}

TEST_F(ClusterCommandsTest, FailedGenerateIsExitCode1WithoutOutput) {
  *service_.AddJob("kjv-1", v1::JOB_STATE_SUCCEEDED).mutable_spec() =
      testing::SampleJob();
  service_.submit_response.set_job_id("act-1");
  service_.AddJob("act-1", v1::JOB_STATE_RUNNING);
  service_.AddState("act-1", v1::JOB_STATE_FAILED, "checkpoint is damaged");
  const CommandResult result = Run({"generate", "kjv", "--prompt", "And"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr("checkpoint is damaged"));
}

TEST_F(ClusterCommandsTest, CtrlCOfGenerateCancelsIt) {
  *service_.AddJob("kjv-1", v1::JOB_STATE_SUCCEEDED).mutable_spec() =
      testing::SampleJob();
  service_.submit_response.set_job_id("act-1");
  service_.AddJob("act-1", v1::JOB_STATE_RUNNING);
  service_.watch_hangs = true;
  std::thread user([this] {
    service_.watch_is_idle.WaitForNotification();
    raise(SIGINT);
  });
  const CommandResult result = Run({"generate", "kjv"});
  user.join();
  EXPECT_EQ(result.code, 4) << result;
  EXPECT_THAT(service_.cancelled(), ElementsAre("act-1"));
}

TEST_F(ClusterCommandsTest, EvaluatePrintsItsReport) {
  v1::JobInfo& job = service_.AddJob("kjv-1", v1::JOB_STATE_SUCCEEDED);
  *job.mutable_spec() = testing::SampleJob();
  service_.submit_response.set_job_id("act-1");
  service_.AddJob("act-1", v1::JOB_STATE_RUNNING);
  v1::JobUpdate update;
  update.mutable_output()->mutable_evaluation()->set_loss(1.25);
  update.mutable_output()->mutable_evaluation()->set_accuracy(0.5);
  service_.AddUpdate("act-1", update);
  service_.AddState("act-1", v1::JOB_STATE_SUCCEEDED);
  const CommandResult bare = Run({"evaluate", "kjv"});
  EXPECT_EQ(bare.code, 2) << bare;
  EXPECT_THAT(bare.err, HasSubstr("no validation data"));
  const CommandResult json =
      Run({"evaluate", "kjv", "--data", "v.txt", "-o", "json"});
  EXPECT_EQ(json.code, 0) << json;
  EXPECT_EQ(ordered_json::parse(json.out)["loss"], 1.25);
  ASSERT_THAT(service_.submits(), SizeIs(1));
  EXPECT_EQ(service_.submits()[0].spec().action().evaluate().data().path(0),
            "v.txt");
  const CommandResult table = Run({"evaluate", "kjv", "--data", "v.txt"});
  EXPECT_THAT(table.out, HasSubstr("ACCURACY"));
  EXPECT_THAT(table.out, HasSubstr("0.5000"));
}

}  // namespace
}  // namespace lockstep
