// One rank against many: the shares of a global batch, each on a rank of its
// own, give the gradients of the whole batch on one rank, whatever the number
// of ranks, for batches that don't divide evenly and unequal valid tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "kernels/device.h"
#include "tests/testing/status_matchers.h"
#include "worker/data/sample_order.h"
#include "worker/dist/local_process_group.h"
#include "worker/train/rank_context.h"
#include "worker/train/train_step.h"
#include "worker/train/training_state.h"

namespace lockstep {
namespace {

class SilentReporter : public Reporter {
 public:
  void Report(v1::RankReport report) override {}
  void SetProgress(int64_t step, v1::Progress progress) override {}
};

struct ParityCase {
  std::string name;
  ModelFamily family;
  Task task;
  int64_t ranks;
  int64_t micro_batch;
};

std::ostream& operator<<(std::ostream& out, const ParityCase& parity) {
  return out << parity.name;
}

constexpr int64_t kGlobalBatch = 10;

ModelSpec SpecOf(const ParityCase& parity) {
  ModelSpec spec;
  spec.family = parity.family;
  spec.task = parity.task;
  spec.layers = 2;
  spec.width = 48;
  spec.heads = 4;
  spec.kv_heads = parity.family == v1::MODEL_FAMILY_LLAMA ? 2 : 4;
  spec.head_width = 12;
  spec.feed_forward_width = 100;
  spec.vocabulary = 61;
  spec.maximum_positions = 40;
  spec.classes = parity.task == v1::TASK_CLASSIFICATION ? 3 : 0;
  spec.dropout = 0.1;
  spec.attention_bias = parity.family == v1::MODEL_FAMILY_GPT2;
  return spec;
}

// Sample `s` of the global batch: its length and its invalid targets depend on
// s alone.
void AppendSample(const ModelSpec& spec, int64_t s, MicroBatch& batch) {
  const int32_t length = static_cast<int32_t>(5 + (s * 7) % 31);
  for (int32_t t = 0; t < length; ++t) {
    batch.tokens.push_back(
        static_cast<int32_t>((s * 31 + t * t * 7 + t) % spec.vocabulary));
    batch.positions.push_back(t);
    batch.sample_positions.push_back(t);
    batch.samples.push_back(static_cast<uint32_t>(s));
    if (spec.task == v1::TASK_LANGUAGE_MODEL) {
      batch.targets.push_back(
          (t + s) % 5 == 0
              ? -1
              : static_cast<int32_t>((s * 3 + t * 5) % spec.vocabulary));
    }
  }
  if (spec.task == v1::TASK_CLASSIFICATION) {
    batch.targets.push_back(static_cast<int32_t>(s % spec.classes));
  }
  for (std::vector<int32_t>* bounds :
       {&batch.segment_bounds, &batch.sample_bounds}) {
    if (bounds->empty()) bounds->push_back(0);
    bounds->push_back(static_cast<int32_t>(batch.tokens.size()));
  }
  batch.max_segment_rows = std::max<int64_t>(batch.max_segment_rows, length);
}

int64_t ValidTargets(const MicroBatch& batch) {
  return std::count_if(batch.targets.begin(), batch.targets.end(),
                       [](int32_t target) { return target >= 0; });
}

StepBatch BatchOf(const ParityCase& parity, int64_t rank) {
  const ModelSpec spec = SpecOf(parity);
  MicroBatch whole;
  for (int64_t s = 0; s < kGlobalBatch; ++s) AppendSample(spec, s, whole);
  StepBatch step;
  step.samples = kGlobalBatch;
  step.valid_targets = ValidTargets(whole);
  const BatchShare share = ShareOf(kGlobalBatch, rank, parity.ranks);
  for (int64_t s = share.first; s < share.last; ++s) {
    if ((s - share.first) % parity.micro_batch == 0) {
      step.micro_batches.emplace_back();
    }
    AppendSample(spec, s, step.micro_batches.back());
  }
  return step;
}

struct Gradients {
  double loss = 0.0;
  std::vector<double> values;
};

// Sum of what each rank's share contributes: what the all-reduce makes.
absl::StatusOr<Gradients> SumOfShares(const ParityCase& parity) {
  DeviceOptions options;
  options.cpu_level = DetectCpuLevel();
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                   MakeCpuDevice(options));
  LocalProcessGroup group("dp");
  SilentReporter reporter;
  const RankContext context = {OneRankGroups(group), *device, {}, {}, reporter,
                               RealClock()};
  TrainingSpec training;
  training.seed = 5;
  ASSIGN_OR_RETURN(
      TrainingState state,
      MakeTrainingState(context, SpecOf(parity), training, Purpose::kTrain));
  state.store->Initialize(training.seed);
  ASSIGN_OR_RETURN(const std::unique_ptr<TrainStep> step,
                   TrainStep::Create(context, state, 50));
  Gradients sum;
  sum.values.resize(state.store->elements());
  for (int64_t rank = 0; rank < parity.ranks; ++rank) {
    ASSIGN_OR_RETURN(const StepResult result,
                     step->AccumulateGradients(BatchOf(parity, rank)));
    sum.loss += result.loss;
    const float* gradient = state.store->gradient().data<float>();
    for (size_t i = 0; i < sum.values.size(); ++i) {
      sum.values[i] += gradient[i];
    }
  }
  return sum;
}

class GradientParityTest : public ::testing::TestWithParam<ParityCase> {};

TEST_P(GradientParityTest, SharesAddUpToTheWholeBatch) {
  ParityCase one = GetParam();
  one.ranks = 1;
  one.micro_batch = kGlobalBatch;
  ASSERT_OK_AND_ASSIGN(const Gradients want, SumOfShares(one));
  ASSERT_OK_AND_ASSIGN(const Gradients got, SumOfShares(GetParam()));
  EXPECT_NEAR(got.loss, want.loss, 1e-6 * want.loss);

  double norm = 0.0;
  for (const double value : want.values) norm += value * value;
  norm = std::sqrt(norm);
  int64_t begin = 0;
  for (const LogicalTensor& tensor : DescribeModel(SpecOf(GetParam()))) {
    const int64_t end = begin + tensor.elements();
    double largest = 0.0;
    for (int64_t i = begin; i < end; ++i) {
      largest = std::max(largest, std::abs(want.values[i]));
    }
    for (int64_t i = begin; i < end; ++i) {
      ASSERT_NEAR(got.values[i], want.values[i], 1e-5 * largest + 1e-7 * norm)
          << tensor.name << "[" << i - begin << "]";
    }
    begin = end;
  }
}

std::vector<ParityCase> Cases() {
  std::vector<ParityCase> cases;
  for (const auto& [family, word] :
       {std::pair{v1::MODEL_FAMILY_GPT2, "Gpt2"},
        std::pair{v1::MODEL_FAMILY_LLAMA, "Llama"}}) {
    for (const int64_t ranks : {1, 2, 3, 4, 12}) {
      const std::string name =
          std::string(word) + "_Ranks" + std::to_string(ranks);
      cases.push_back({name, family, v1::TASK_LANGUAGE_MODEL, ranks, 10});
      cases.push_back(
          {name + "_Accumulated", family, v1::TASK_LANGUAGE_MODEL, ranks, 2});
      cases.push_back(
          {name + "_Classifier", family, v1::TASK_CLASSIFICATION, ranks, 3});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, GradientParityTest, ::testing::ValuesIn(Cases()),
    [](const ::testing::TestParamInfo<ParityCase>& parity) {
      return parity.param.name;
    });

}  // namespace
}  // namespace lockstep
