// TrainFixture: one rank without a worker, its device, and a small job with
// data, for tests of what ranks do.
#ifndef LOCKSTEP_TESTS_UNIT_TRAIN_TRAIN_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_TRAIN_TRAIN_FIXTURE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/spec/job_spec.h"
#include "gtest/gtest.h"
#include "kernels/device.h"
#include "tests/testing/in_memory_store.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "worker/data/prepared_data.h"
#include "worker/dist/local_process_group.h"
#include "worker/train/checkpointing.h"
#include "worker/train/gang_data.h"
#include "worker/train/rank_context.h"
#include "worker/train/training_state.h"

namespace lockstep {
namespace testing {

class RecordingReporter : public Reporter {
 public:
  void Report(v1::RankReport report) override {
    reports.push_back(std::move(report));
  }
  void SetProgress(int64_t, v1::Progress progress) override {
    phases.push_back(progress.phase());
  }

  std::vector<v1::RankReport> reports;
  std::vector<std::string> phases;
};

class TrainFixture : public ::testing::Test {
 protected:
  TrainFixture() {
    DeviceOptions options;
    options.cpu_level = DetectCpuLevel();
    device_ = *MakeCpuDevice(options);
    context_ = std::unique_ptr<RankContext>(new RankContext{
        OneRankGroups(group_), *device_, {}, {0, 1}, reporter_, RealClock()});

    v1::JobSpec& spec = *assignment_.mutable_spec();
    spec.set_name("tiny");
    spec.set_task(v1::TASK_LANGUAGE_MODEL);
    spec.mutable_model()->set_family(v1::MODEL_FAMILY_LLAMA);
    spec.mutable_model()->set_layers(1);
    spec.mutable_model()->set_width(16);
    spec.mutable_model()->set_heads(2);
    spec.mutable_train()->set_global_batch(2);
    spec.mutable_train()->set_sequence_length(8);
    spec.mutable_train()->set_steps(10);
    spec.mutable_train()->mutable_optimizer()->set_learning_rate(0.01);
    spec.mutable_data()->mutable_train()->add_path("train.txt");
    spec.mutable_data()->mutable_validation()->add_path("valid.txt");
    dir_.Write("train.txt", "a text that is long enough to train on");
    dir_.Write("valid.txt", "another text");
    assignment_.mutable_gang()->set_job("tiny-1");
    assignment_.mutable_gang()->set_generation(1);
    assignment_.mutable_layout()->set_micro_batch(2);
    assignment_.set_job_dir(dir_.File("job"));
    assignment_.set_cache_dir(dir_.File("cache"));
    assignment_.set_data_root(dir_.path());
    std::filesystem::create_directories(assignment_.job_dir());
  }

  v1::JobSpec& spec() { return *assignment_.mutable_spec(); }

  absl::StatusOr<std::unique_ptr<PreparedData>> OpenData() {
    FillDefaults(spec());
    InMemoryStore store;
    return OpenGangData(*context_, assignment_, store);
  }

  // The job's model as it starts.
  absl::StatusOr<TrainingState> MakeState(int64_t vocabulary, Purpose purpose) {
    FillDefaults(spec());
    ASSIGN_OR_RETURN(const ModelSpec model,
                     MakeModelSpec(spec(), vocabulary, 0));
    ASSIGN_OR_RETURN(
        TrainingState state,
        MakeTrainingState(*context_, model, MakeTrainingSpec(spec()), purpose));
    RETURN_IF_ERROR(Initialize(*context_, state));
    return state;
  }

  // A checkpoint of it, as a job on this data would write it; its path.
  absl::StatusOr<std::string> Save() {
    ASSIGN_OR_RETURN(const std::unique_ptr<PreparedData> data, OpenData());
    ASSIGN_OR_RETURN(const TrainingState state,
                     MakeState(data->vocabulary(), Purpose::kTrain));
    CheckpointFacts facts;
    facts.job_dir = assignment_.job_dir();
    facts.job = assignment_.gang().job();
    facts.generation = assignment_.gang().generation();
    facts.spec = spec();
    facts.data_digest = data->digest();
    facts.tokenizer_files = data->tokenizer_files();
    RETURN_IF_ERROR(SaveCheckpoint(*context_, state, facts));
    return reporter_.reports.back().checkpoint().path();
  }

  const TempDir dir_;
  LocalProcessGroup group_{"world"};
  RecordingReporter reporter_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<RankContext> context_;
  v1::RankAssignment assignment_;
};

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_TRAIN_TRAIN_FIXTURE_H_
