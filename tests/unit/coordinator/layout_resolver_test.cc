#include "coordinator/plan/layout_resolver.h"

#include "common/model/memory_count.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/coordinator/test_jobs.h"

namespace lockstep {
namespace {

using ::lockstep::testing::FilledSpec;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

v1::ClusterShape Shape(int64_t devices, uint64_t memory_bytes = 0) {
  v1::ClusterShape shape;
  shape.set_devices(devices);
  shape.set_memory_per_device_bytes(memory_bytes);
  return shape;
}

TEST(LayoutResolverTest, AutoIsDpOverAllDevices) {
  ASSERT_OK_AND_ASSIGN(
      const v1::ResolvedLayout resolved,
      ResolveLayout(FilledSpec(), Shape(4), DeviceUse::kExact));
  EXPECT_EQ(resolved.world_size(), 4);
  EXPECT_EQ(resolved.layout().dp(), 4);
  EXPECT_EQ(resolved.layout().fsdp(), 1);
  EXPECT_EQ(resolved.layout().tp(), 1);
  EXPECT_EQ(resolved.layout().micro_batch(), 2);
  EXPECT_GT(resolved.predicted_memory().peak_bytes(), 0u);
}

TEST(LayoutResolverTest, MicroBatchIsTheLargestShare) {
  v1::JobSpec spec = FilledSpec();
  spec.mutable_train()->set_global_batch(7);
  ASSERT_OK_AND_ASSIGN(const v1::ResolvedLayout resolved,
                       ResolveLayout(spec, Shape(3), DeviceUse::kExact));
  EXPECT_EQ(resolved.layout().micro_batch(), 3);
}

TEST(LayoutResolverTest, MicroBatchIsHalvedUntilItFits) {
  const v1::JobSpec spec = FilledSpec();
  ASSERT_OK_AND_ASSIGN(const v1::ResolvedLayout whole,
                       ResolveLayout(spec, Shape(1), DeviceUse::kExact));
  ASSERT_EQ(whole.layout().micro_batch(), 8);
  const uint64_t limit = whole.predicted_memory().peak_bytes() - 1;
  ASSERT_OK_AND_ASSIGN(const v1::ResolvedLayout halved,
                       ResolveLayout(spec, Shape(1, limit), DeviceUse::kExact));
  EXPECT_EQ(halved.layout().micro_batch(), 4);
  EXPECT_LE(halved.predicted_memory().peak_bytes(), limit);
}

TEST(LayoutResolverTest, SmallerOfRequestAndDeviceIsTheLimit) {
  v1::JobSpec spec = FilledSpec();
  spec.mutable_resources()->mutable_memory_per_device()->set_bytes(10);
  EXPECT_THAT(ResolveLayout(spec, Shape(1, 1 << 30), DeviceUse::kExact),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("its limit is 10 B")));
  spec.mutable_resources()->mutable_memory_per_device()->set_bytes(1 << 30);
  EXPECT_THAT(ResolveLayout(spec, Shape(1, 12), DeviceUse::kExact),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("its limit is 12 B")));
}

TEST(LayoutResolverTest, NothingFitsIsRefusedWithTheNumbers) {
  EXPECT_THAT(
      ResolveLayout(FilledSpec(), Shape(1, 1000), DeviceUse::kExact),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("micro_batch 1"), HasSubstr("parameters"),
                     HasSubstr("optimizer"), HasSubstr("activations"),
                     HasSubstr("1000 B"), HasSubstr("would do"))));
}

TEST(LayoutResolverTest, GivenMicroBatchIsNotChanged) {
  v1::JobSpec spec = FilledSpec();
  spec.mutable_parallel()->set_micro_batch(2);
  FillDefaults(spec);
  ASSERT_OK_AND_ASSIGN(const v1::ResolvedLayout resolved,
                       ResolveLayout(spec, Shape(1), DeviceUse::kExact));
  EXPECT_EQ(resolved.layout().micro_batch(), 2);
  const uint64_t limit = resolved.predicted_memory().peak_bytes() - 1;
  EXPECT_THAT(ResolveLayout(spec, Shape(1, limit), DeviceUse::kExact),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("parallel.micro_batch 1 would do")));
  // Nothing helps here.
  EXPECT_THAT(ResolveLayout(spec, Shape(1, 1000), DeviceUse::kExact),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("devices with at least ")));
}

TEST(LayoutResolverTest, DegreesByHandMustMakeTheDevices) {
  v1::JobSpec spec = FilledSpec();
  spec.mutable_parallel()->set_dp(2);
  FillDefaults(spec);
  EXPECT_EQ(RequestedDevices(spec), 2);
  EXPECT_THAT(ResolveLayout(spec, Shape(2), DeviceUse::kExact),
              testing::IsOk());
  EXPECT_THAT(ResolveLayout(spec, Shape(4), DeviceUse::kExact),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("resources.devices is 4"),
                             HasSubstr("2 ranks"))));
  EXPECT_THAT(ResolveLayout(spec, Shape(1), DeviceUse::kAtMost),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("only 1 devices")));
}

TEST(LayoutResolverTest, RunMayLeaveDevicesAlone) {
  v1::JobSpec spec = FilledSpec();
  spec.mutable_parallel()->set_dp(2);
  FillDefaults(spec);
  ASSERT_OK_AND_ASSIGN(const v1::ResolvedLayout by_hand,
                       ResolveLayout(spec, Shape(4), DeviceUse::kAtMost));
  EXPECT_EQ(by_hand.world_size(), 2);
  spec.clear_parallel();
  spec.mutable_train()->set_global_batch(3);
  ASSERT_OK_AND_ASSIGN(const v1::ResolvedLayout automatic,
                       ResolveLayout(spec, Shape(4), DeviceUse::kAtMost));
  EXPECT_EQ(automatic.world_size(), 3);
}

TEST(LayoutResolverTest, MoreReplicasThanSequencesAreRefused) {
  v1::JobSpec spec = FilledSpec();
  EXPECT_THAT(ResolveLayout(spec, Shape(9), DeviceUse::kExact),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("resources.devices is 9"),
                             HasSubstr("train.global_batch is 8"))));
  spec.mutable_parallel()->set_dp(9);
  FillDefaults(spec);
  EXPECT_THAT(ResolveLayout(spec, Shape(9), DeviceUse::kAtMost),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("parallel.dp is 9")));
}

TEST(LayoutResolverTest, FsdpSharesTheBatchAndTheStates) {
  v1::JobSpec spec = FilledSpec();
  ASSERT_OK_AND_ASSIGN(const v1::ResolvedLayout one,
                       ResolveLayout(spec, Shape(1), DeviceUse::kExact));
  spec.mutable_parallel()->set_fsdp(2);
  spec.mutable_parallel()->set_dp(2);
  spec.mutable_parallel()->set_zero_stage(2);
  FillDefaults(spec);
  EXPECT_EQ(RequestedDevices(spec), 4);
  ASSERT_OK_AND_ASSIGN(const v1::ResolvedLayout sharded,
                       ResolveLayout(spec, Shape(4), DeviceUse::kExact));
  EXPECT_EQ(sharded.world_size(), 4);
  EXPECT_EQ(sharded.layout().fsdp(), 2);
  EXPECT_EQ(sharded.layout().zero_stage(), 2);
  EXPECT_EQ(sharded.layout().micro_batch(), 2);
  // Whole weights, half of the gradients and of the states.
  EXPECT_EQ(sharded.predicted_memory().parameters_bytes(),
            one.predicted_memory().parameters_bytes());
  EXPECT_LT(sharded.predicted_memory().optimizer_bytes(),
            one.predicted_memory().optimizer_bytes() * 0.55);
  EXPECT_LT(sharded.predicted_memory().gradients_bytes(),
            one.predicted_memory().gradients_bytes() * 0.55);
}

TEST(LayoutResolverTest, RanksOfFsdpNeedSequencesToo) {
  v1::JobSpec spec = FilledSpec();
  spec.mutable_parallel()->set_fsdp(3);
  spec.mutable_parallel()->set_dp(3);
  FillDefaults(spec);
  EXPECT_THAT(ResolveLayout(spec, Shape(9), DeviceUse::kExact),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("parallel.dp x parallel.fsdp is 9"),
                             HasSubstr("at most 8 would do"))));
}

TEST(LayoutResolverTest, SaysWhichShardingWouldFit) {
  v1::JobSpec spec = FilledSpec();
  spec.mutable_model()->set_layers(8);
  spec.mutable_parallel()->set_dp(2);
  spec.mutable_parallel()->set_micro_batch(1);
  FillDefaults(spec);
  ASSERT_OK_AND_ASSIGN(const v1::ResolvedLayout replicas,
                       ResolveLayout(spec, Shape(2), DeviceUse::kExact));
  const uint64_t limit = replicas.predicted_memory().peak_bytes() - 1;
  EXPECT_THAT(ResolveLayout(spec, Shape(2, limit), DeviceUse::kExact),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("dp 2 a rank needs"),
                             HasSubstr("parallel {fsdp: "))));
}

TEST(LayoutResolverTest, ContextParallelRanksShareSequencesAndStates) {
  v1::JobSpec spec = FilledSpec();
  ASSERT_OK_AND_ASSIGN(const v1::ResolvedLayout one,
                       ResolveLayout(spec, Shape(1), DeviceUse::kExact));
  spec.mutable_parallel()->set_cp(2);
  ASSERT_OK_AND_ASSIGN(const v1::ResolvedLayout resolved,
                       ResolveLayout(spec, Shape(2), DeviceUse::kExact));
  EXPECT_EQ(resolved.world_size(), 2);
  EXPECT_EQ(resolved.layout().cp_kind(), v1::CONTEXT_PARALLEL_KIND_RING);
  EXPECT_EQ(resolved.layout().micro_batch(), 8);
  EXPECT_LT(resolved.predicted_memory().optimizer_bytes(),
            0.6 * one.predicted_memory().optimizer_bytes());
  EXPECT_LT(resolved.predicted_memory().activations_bytes(),
            one.predicted_memory().activations_bytes());
}

TEST(LayoutResolverTest, ContextParallelThatCannotWorkIsRefused) {
  v1::JobSpec spec = FilledSpec();
  const int64_t heads = spec.model().heads();
  spec.mutable_parallel()->set_cp(heads + 1);
  spec.mutable_parallel()->set_cp_kind(v1::CONTEXT_PARALLEL_KIND_ULYSSES);
  EXPECT_THAT(ResolveLayout(spec, Shape(heads + 1), DeviceUse::kExact),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("or cp_kind ring"),
                             HasSubstr(absl::StrCat("at most ", heads)))));
  spec.set_task(v1::TASK_CLASSIFICATION);
  spec.mutable_parallel()->set_cp(2);
  EXPECT_THAT(ResolveLayout(spec, Shape(2), DeviceUse::kExact),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the task is classification")));
}

TEST(LayoutResolverTest, TensorParallelRanksShareSamples) {
  v1::JobSpec spec = FilledSpec();
  spec.mutable_parallel()->set_tp(2);
  spec.mutable_parallel()->set_dp(2);
  ASSERT_OK_AND_ASSIGN(const v1::ResolvedLayout resolved,
                       ResolveLayout(spec, Shape(4), DeviceUse::kExact));
  EXPECT_EQ(resolved.world_size(), 4);
  EXPECT_EQ(resolved.layout().tp(), 2);
  EXPECT_TRUE(resolved.layout().sequence_parallel());
  // 8 sequences on 2 shares.
  EXPECT_EQ(resolved.layout().micro_batch(), 4);
  spec.mutable_parallel()->set_sequence_parallel(false);
  ASSERT_OK_AND_ASSIGN(const v1::ResolvedLayout whole_rows,
                       ResolveLayout(spec, Shape(4), DeviceUse::kExact));
  EXPECT_FALSE(whole_rows.layout().sequence_parallel());
  EXPECT_GT(whole_rows.predicted_memory().activations_bytes(),
            resolved.predicted_memory().activations_bytes());
}

TEST(LayoutResolverTest, PipelinesTakeSmallMicroBatches) {
  v1::JobSpec spec = FilledSpec();
  spec.mutable_parallel()->set_pp(2);
  ASSERT_OK_AND_ASSIGN(const v1::ResolvedLayout resolved,
                       ResolveLayout(spec, Shape(2), DeviceUse::kExact));
  EXPECT_EQ(resolved.world_size(), 2);
  EXPECT_EQ(resolved.layout().pp(), 2);
  EXPECT_EQ(resolved.layout().schedule(), v1::PIPELINE_SCHEDULE_1F1B);
  // 8 sequences in twice as many micro-batches as stages.
  EXPECT_EQ(resolved.layout().micro_batch(), 2);
}

TEST(LayoutResolverTest, PipelinesThatCannotWorkAreRefused) {
  v1::JobSpec spec = FilledSpec();
  const int64_t units = spec.model().layers() + 2;
  spec.mutable_parallel()->set_pp(units + 1);
  EXPECT_THAT(
      ResolveLayout(spec, Shape(units + 1), DeviceUse::kExact),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr(absl::StrCat("parallel.pp is ", units + 1)),
                     HasSubstr(absl::StrCat("at most ", units, " ranks")))));
  spec.mutable_parallel()->set_pp(2);
  spec.mutable_parallel()->set_virtual_stages(2);
  EXPECT_THAT(ResolveLayout(spec, Shape(2), DeviceUse::kExact),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("takes parallel.schedule interleaved_1f1b")));
  spec.mutable_parallel()->set_pp(1);
  EXPECT_THAT(ResolveLayout(spec, Shape(1), DeviceUse::kExact),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("parallel.pp is 1")));
}

TEST(LayoutResolverTest, MoreTensorRanksThanKeyHeadsAreRefused) {
  v1::JobSpec spec = FilledSpec();
  const int64_t heads = spec.model().heads();
  spec.mutable_parallel()->set_tp(heads + 1);
  EXPECT_THAT(
      ResolveLayout(spec, Shape(heads + 1), DeviceUse::kExact),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr(absl::StrCat("parallel.tp is ", heads + 1)),
                     HasSubstr(absl::StrCat("at most ", heads)))));
  spec.mutable_model()->set_family(v1::MODEL_FAMILY_LLAMA);
  spec.mutable_model()->set_kv_heads(1);
  spec.mutable_parallel()->set_tp(2);
  EXPECT_THAT(ResolveLayout(spec, Shape(2), DeviceUse::kExact),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model.kv_heads is 1")));
}

TEST(LayoutResolverTest, RequestedDevicesAreSpecThenProductThenOne) {
  v1::JobSpec spec = FilledSpec();
  EXPECT_EQ(RequestedDevices(spec), 1);
  spec.mutable_parallel()->set_dp(3);
  EXPECT_EQ(RequestedDevices(spec), 3);
  spec.mutable_parallel()->set_fsdp(5);
  spec.mutable_parallel()->set_cp(7);
  spec.mutable_parallel()->set_tp(2);
  spec.mutable_parallel()->set_pp(11);
  EXPECT_EQ(RequestedDevices(spec), 3 * 5 * 7 * 2 * 11);
  spec.mutable_resources()->mutable_devices()->set_max(4);
  EXPECT_EQ(RequestedDevices(spec), 4);
}

TEST(LayoutResolverTest, VocabularyIsTheModelsThenTheTokenizers) {
  v1::JobSpec spec = FilledSpec();
  EXPECT_EQ(EstimatedVocabulary(spec), 257);
  spec.mutable_data()->mutable_tokenizer()->set_kind(
      v1::TOKENIZER_KIND_SENTENCEPIECE);
  spec.mutable_data()->mutable_tokenizer()->set_vocabulary(2048);
  EXPECT_EQ(EstimatedVocabulary(spec), 2048);
  spec.mutable_model()->set_vocabulary(4096);
  EXPECT_EQ(EstimatedVocabulary(spec), 4096);
}

}  // namespace
}  // namespace lockstep
