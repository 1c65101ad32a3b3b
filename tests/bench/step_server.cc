#include "tests/bench/step_server.h"

#include <iostream>
#include <random>
#include <string>

#include "common/clock.h"
#include "common/status_macros.h"
#include "kernels/device.h"
#include "worker/dist/local_process_group.h"
#include "worker/train/process_memory.h"
#include "worker/train/rank_context.h"
#include "worker/train/train_step.h"

namespace lockstep {
namespace {

class SilentReporter : public Reporter {
 public:
  void Report(v1::RankReport report) override {}
  void SetProgress(int64_t step, v1::Progress progress) override {}
};

// Full-length samples of random tokens, as the peer's.
StepBatch RandomBatch(const BenchModel& bench, std::mt19937& random) {
  MicroBatch batch;
  const int32_t length = static_cast<int32_t>(bench.training.sequence_length);
  const bool classify = bench.model.classes > 0;
  batch.segment_bounds = {0};
  for (int64_t sample = 0; sample < bench.training.global_batch; ++sample) {
    for (int32_t t = 0; t < length; ++t) {
      batch.tokens.push_back(random() % bench.model.vocabulary);
      batch.positions.push_back(t);
      batch.samples.push_back(static_cast<uint32_t>(sample));
      if (!classify) batch.targets.push_back(random() % bench.model.vocabulary);
    }
    if (classify) batch.targets.push_back(random() % bench.model.classes);
    batch.segment_bounds.push_back(static_cast<int32_t>(batch.tokens.size()));
  }
  batch.sample_positions = batch.positions;
  batch.sample_bounds = batch.segment_bounds;
  batch.max_segment_rows = length;
  StepBatch step;
  step.samples = bench.training.global_batch;
  step.valid_targets = static_cast<int64_t>(batch.targets.size());
  step.rows = batch.rows();
  step.micro_batches.push_back(std::move(batch));
  return step;
}

}  // namespace

absl::Status ServeSteps(const BenchModel& bench, int threads) {
  DeviceOptions options;
  options.threads = threads;
  options.cpu_level = DetectCpuLevel();
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                   MakeCpuDevice(options));
  LocalProcessGroup group("world");
  SilentReporter reporter;
  const RankContext context = {OneRankGroups(group), *device, {}, {}, reporter,
                               RealClock()};
  ASSIGN_OR_RETURN(
      TrainingState state,
      MakeTrainingState(context, bench.model, bench.training, Purpose::kTrain));
  RETURN_IF_ERROR(Initialize(context, state));
  ASSIGN_OR_RETURN(const std::unique_ptr<TrainStep> step,
                   TrainStep::Create(context, state, *bench.training.steps));
  std::mt19937 random(1);
  std::cout << "ready" << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line == "memory") {
      std::cout << ProcessPeakBytes() << std::endl;
      continue;
    }
    const StepBatch batch = RandomBatch(bench, random);
    const absl::Duration begin = RealClock().Uptime();
    RETURN_IF_ERROR(step->Run(batch).status());
    std::cout << absl::ToDoubleSeconds(RealClock().Uptime() - begin)
              << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace lockstep
