#include "common/spec/spec_printer.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/spec/spec_reader.h"
#include "lockstep/v1/job_service.pb.h"
#include "lockstep/v1/step_report.pb.h"
#include "tests/unit/cli/sample_job.h"

namespace lockstep {
namespace {

TEST(ToJsonTest, StepReportIsALineWithAllFields) {
  v1::StepReport report;
  report.set_step(3);
  report.set_loss(0.1);
  report.set_tokens(4096);
  EXPECT_EQ(ToJson(report, JsonStyle::kLine),
            R"({"step":"3","loss":0.1,"grad_norm":0.0,"learning_rate":0.0,)"
            R"("tokens":"4096","seconds":0.0})");
}

TEST(ToJsonTest, DoublesKeepAllDigits) {
  v1::StepReport report;
  report.set_loss(1.0 / 3.0);
  report.set_grad_norm(std::numeric_limits<double>::quiet_NaN());
  report.set_seconds(std::numeric_limits<double>::infinity());
  v1::StepReport back;
  const std::string json = ToJson(report, JsonStyle::kLine);
  ASSERT_TRUE(ReadSpecText(json, "x", back).ok()) << json;
  EXPECT_EQ(back.loss(), report.loss());
  EXPECT_NE(json.find("\"grad_norm\":\"NaN\""), std::string::npos);
  EXPECT_NE(json.find("\"seconds\":\"Infinity\""), std::string::npos);
}

TEST(ToJsonTest, AbsentIsLeftOutAndListsAreNot) {
  v1::JobReport report;
  report.mutable_job()->set_id("kjv-1");
  report.mutable_metrics()->set_train_loss(0.0);
  report.mutable_layout()->set_dp(2);
  report.mutable_layout()->set_cp_kind(v1::CONTEXT_PARALLEL_KIND_RING);
  EXPECT_EQ(ToJson(report, JsonStyle::kLine),
            R"({"job":{"id":"kjv-1","name":"","state":"","reason":""},)"
            R"("layout":{"dp":"2","fsdp":"0","zero_stage":"0","cp":"0",)"
            R"("cp_kind":"ring","tp":"0","sequence_parallel":false,"pp":"0",)"
            R"("virtual_stages":"0","micro_batch":"0"},)"
            R"("metrics":{"train_loss":0.0},"memory":[],"attempts":[]})");
}

TEST(ToJsonTest, StatesAreCapitalsAndTimesAreText) {
  v1::JobInfo info;
  info.set_state(v1::JOB_STATE_RUNNING);
  info.set_cause(v1::CAUSE_OOM_KILL);
  info.mutable_submitted()->set_seconds(0);
  const std::string json = ToJson(info, JsonStyle::kLine);
  EXPECT_NE(json.find(R"("state":"RUNNING")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("cause":"oom_kill")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("submitted":"1970-01-01T00:00:00Z")"),
            std::string::npos)
      << json;
}

TEST(ToJsonTest, TextThatIsNotUtf8IsReplaced) {
  v1::LogLine line;
  line.set_line("a\xff");
  EXPECT_EQ(ToJson(line, JsonStyle::kLine),
            "{\"rank\":\"0\",\"line\":\"a\xef\xbf\xbd\"}");
}

TEST(ToYamlTest, GoldenJobFile) {
  v1::JobSpec spec;
  ASSERT_TRUE(ReadSpecText("name: 'true'\n"
                           "data: {train: {path: [a.txt, 'b: c']}}\n"
                           "parallel: {schedule: 1f1b}\n"
                           "resources: {devices: 2, memory_per_device: 1GiB}\n"
                           "restart: {hang_timeout: 15s}\n",
                           "x", spec)
                  .ok());
  EXPECT_EQ(ToYaml(spec),
            "name: \"true\"\n"
            "data:\n"
            "  train:\n"
            "    path: [a.txt, \"b: c\"]\n"
            "    text: \"\"\n"
            "    label: \"\"\n"
            "  attend_across_documents: false\n"
            "parallel:\n"
            "  schedule: 1f1b\n"
            "resources:\n"
            "  devices: 2\n"
            "  memory_per_device: 1GiB\n"
            "restart:\n"
            "  hang_timeout: 15s\n");
}

TEST(ToYamlTest, ReadsBackAsTheSameMessage) {
  const v1::JobSpec spec = testing::SampleJob();
  v1::JobSpec back;
  ASSERT_TRUE(ReadSpecText(ToYaml(spec), "x", back).ok()) << ToYaml(spec);
  EXPECT_EQ(back.DebugString(), spec.DebugString());
  v1::JobSpec from_json;
  ASSERT_TRUE(
      ReadSpecText(ToJson(spec, JsonStyle::kIndented), "x", from_json).ok());
  EXPECT_EQ(from_json.DebugString(), spec.DebugString());
}

TEST(EnumWordTest, DropsThePrefix) {
  EXPECT_EQ(EnumWord(*v1::PipelineSchedule_descriptor()->FindValueByNumber(
                v1::PIPELINE_SCHEDULE_INTERLEAVED_1F1B)),
            "interleaved_1f1b");
  EXPECT_EQ(EnumWord(*v1::JobState_descriptor()->FindValueByNumber(
                v1::JOB_STATE_PENDING)),
            "PENDING");
}

}  // namespace
}  // namespace lockstep
