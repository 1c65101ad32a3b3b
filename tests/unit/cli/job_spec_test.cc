#include "common/spec/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/spec/spec_reader.h"
#include "tests/unit/cli/sample_job.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SampleJob;
using ::testing::StartsWith;

// Changes of the sample job, separated by spaces.
absl::StatusOr<v1::JobSpec> Changed(const std::string& changes) {
  v1::JobSpec spec = SampleJob();
  for (size_t begin = 0; begin < changes.size();) {
    size_t end = changes.find(' ', begin);
    if (end == std::string::npos) end = changes.size();
    const absl::Status status =
        SetSpecField(changes.substr(begin, end - begin), spec);
    if (!status.ok()) return status;
    begin = end + 1;
  }
  return spec;
}

absl::Status Validate(const std::string& changes) {
  const auto spec = Changed(changes);
  return spec.ok() ? ValidateJobSpec(*spec) : spec.status();
}

TEST(ValidateJobSpecTest, SampleJobIsValid) {
  EXPECT_EQ(Validate(""), absl::OkStatus());
}

struct BadValue {
  const char* changes;
  // What the message must hold.
  const char* key;
};

class BadValueTest : public ::testing::TestWithParam<BadValue> {};

TEST_P(BadValueTest, IsRefusedByKey) {
  const absl::Status status = Validate(GetParam().changes);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().key));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, BadValueTest,
    ::testing::Values(
        BadValue{"name=null", "name is missing"},
        BadValue{"name=a/b", "name is \"a/b\""}, BadValue{"name=..", "name is"},
        BadValue{"name=-x", "name is"},
        BadValue{"name=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                 "aaaaaaaa",
                 "name has 64 characters"},
        BadValue{"model=null", "model is missing"},
        BadValue{"model.family=null", "model.family is missing"},
        BadValue{"model.layers=null", "model.layers is missing or 0"},
        BadValue{"model.layers=-1", "model.layers is -1"},
        BadValue{"model.layers=10001", "model.layers is 10001"},
        BadValue{"model.width=-256", "model.width is -256"},
        BadValue{"model.width=9223372036854775807", "model.width is"},
        BadValue{"model.heads=0", "model.heads is missing or 0"},
        BadValue{"model.heads=5", "does not divide model.width 256"},
        BadValue{"model.heads=256", "even number for rotary"},
        BadValue{"model.head_width=33", "model.head_width is 33"},
        BadValue{"model.head_width=0", "model.head_width is 0"},
        BadValue{"model.head_width=1000000", "model.heads x model.head_width"},
        BadValue{"model.kv_heads=3", "model.kv_heads is 3"},
        BadValue{"model.kv_heads=8", "model.kv_heads is 8"},
        BadValue{"model.kv_heads=0", "model.kv_heads is 0"},
        BadValue{"model.family=gpt2 model.kv_heads=2", "model.kv_heads"},
        BadValue{"model.family=gpt2 model.rope_theta=1", "model.rope_theta"},
        BadValue{"model.rope_theta=0", "model.rope_theta is 0"},
        BadValue{"model.rope_theta=.inf", "model.rope_theta is inf"},
        BadValue{"model.maximum_positions=128", "model.maximum_positions"},
        BadValue{"model.family=gpt2 model.maximum_positions=127",
                 "want at least train.sequence_length 128"},
        BadValue{"model.feed_forward_width=0", "model.feed_forward_width is 0"},
        BadValue{"model.vocabulary=1", "model.vocabulary is 1"},
        BadValue{"model.dropout=1", "model.dropout is 1"},
        BadValue{"model.dropout=-0.1", "model.dropout is -0.1"},
        BadValue{"model.dropout=.nan", "model.dropout is"},
        BadValue{"model.norm_epsilon=0", "model.norm_epsilon is 0"},
        BadValue{"data=null", "data is missing"},
        BadValue{"data.train=null", "data.train.path is missing"},
        BadValue{"data.train.path=[]", "data.train.path is missing"},
        BadValue{"data.train.path=['a.txt','']", "data.train.path[1] is empty"},
        BadValue{"data.train.fraction=0.5", "data.train.fraction"},
        BadValue{"data.train.text=body", "data.train.text is a key of jsonl"},
        BadValue{"data.train.label=kind", "data.train.label is a key of jsonl"},
        BadValue{"data.train.dtype=uint32", "data.train.dtype is a key of"},
        BadValue{"task=classification", "which has no labels"},
        BadValue{"data.validation.fraction=0", "data.validation.fraction is 0"},
        BadValue{"data.validation.fraction=1", "data.validation.fraction is 1"},
        BadValue{"data.validation.fraction=.nan", "data.validation.fraction"},
        BadValue{"data.validation.fraction=.1 data.validation.path=v.txt",
                 "both path and fraction"},
        BadValue{"data.validation.fraction=.1 data.validation.format=text",
                 "belong there"},
        BadValue{"data.validation.path=v.bin", "can't be mixed"},
        BadValue{"data.tokenizer.vocabulary=300", "data.tokenizer.vocabulary"},
        BadValue{"data.tokenizer.path=x.model", "data.tokenizer.path"},
        BadValue{"data.tokenizer.kind=sentencepiece",
                 "data.tokenizer needs vocabulary"},
        BadValue{"data.tokenizer.kind=sentencepiece "
                 "data.tokenizer.vocabulary=100",
                 "data.tokenizer.vocabulary is 100"},
        BadValue{"data.tokenizer.kind=sentencepiece "
                 "data.tokenizer.vocabulary=300 data.tokenizer.path=x.model",
                 "names a trained one"},
        BadValue{"data.train.path=a.bin data.tokenizer.kind=bytes",
                 "token ids already"},
        BadValue{"data.end_token=0", "data.end_token is a key of tokens"},
        BadValue{"data.train.path=a.bin data.end_token=-1",
                 "data.end_token is -1"},
        BadValue{"data.train.path=a.bin model.vocabulary=9 data.end_token=9",
                 "data.end_token is 9"},
        BadValue{"train.global_batch=0", "train.global_batch is missing or 0"},
        BadValue{"train.global_batch=-3", "train.global_batch is -3"},
        BadValue{"train.global_batch=9223372036854775807",
                 "train.global_batch is"},
        BadValue{"train.sequence_length=0", "train.sequence_length is"},
        BadValue{"train.global_batch=10000000 train.sequence_length=100000000 "
                 "model.layers=10000",
                 "activations a step"},
        BadValue{"train.steps=null", "train.steps is missing"},
        BadValue{"train.steps=0", "train.steps is 0"},
        BadValue{"train.epochs=1", "both steps and epochs"},
        BadValue{"train.steps=null train.epochs=0", "train.epochs is 0"},
        BadValue{"train.optimizer=null", "learning_rate is missing"},
        BadValue{"train.optimizer.learning_rate=0", "learning_rate is 0"},
        BadValue{"train.optimizer.learning_rate=-1", "learning_rate is -1"},
        BadValue{"train.optimizer.learning_rate=.nan", "learning_rate is"},
        BadValue{"train.optimizer.learning_rate=1e999", "learning_rate is inf"},
        BadValue{"train.optimizer.betas=[0.9]", "betas has 1 numbers"},
        BadValue{"train.optimizer.betas=[0.9,1]", "betas[1] is 1"},
        BadValue{"train.optimizer.betas=[.nan,0.9]", "betas[0] is"},
        BadValue{"train.optimizer.epsilon=0", "epsilon is 0"},
        BadValue{"train.optimizer.weight_decay=-1", "weight_decay is -1"},
        BadValue{"train.optimizer.momentum=0.9", "momentum is a key of sgd"},
        BadValue{"train.optimizer.name=sgd train.optimizer.momentum=1",
                 "momentum is 1"},
        BadValue{"train.optimizer.name=sgd train.optimizer.betas=[0.9,0.9]",
                 "betas is a key of adamw"},
        BadValue{"train.optimizer.name=lars train.optimizer.epsilon=1e-8",
                 "epsilon is a key of adamw"},
        BadValue{"train.optimizer.name=lamb "
                 "train.optimizer.trust_coefficient=0.1",
                 "trust_coefficient is a key of lars"},
        BadValue{
            "train.optimizer.name=lars train.optimizer.trust_coefficient=0",
            "trust_coefficient is 0"},
        BadValue{"train.schedule.warmup_steps=-1", "warmup_steps is -1"},
        BadValue{"train.schedule.warmup_steps=401", "warmup_steps is 401"},
        BadValue{"train.schedule.minimum_ratio=0.1", "minimum_ratio is a key"},
        BadValue{"train.schedule.name=cosine train.schedule.minimum_ratio=2",
                 "minimum_ratio is 2"},
        BadValue{"train.schedule.name=cosine train.schedule.decay_steps=9",
                 "decay_steps is a key of wsd"},
        BadValue{"train.schedule.name=wsd train.schedule.decay_steps=0",
                 "decay_steps is 0"},
        BadValue{"train.schedule.name=wsd train.schedule.decay_steps=300 "
                 "train.schedule.warmup_steps=101",
                 "together pass train.steps 400"},
        BadValue{"train.learning_rate_scaling={}",
                 "reference_batch is missing"},
        BadValue{"train.clip_grad_norm=0", "train.clip_grad_norm is 0"},
        BadValue{"train.evaluate_every=0", "train.evaluate_every is 0"},
        BadValue{"parallel.dp=0", "parallel.dp is 0"},
        BadValue{"parallel.tp=-2", "parallel.tp is -2"},
        BadValue{"parallel.dp=1000000 parallel.tp=1000000", "the product of"},
        BadValue{"parallel.dp=33", "33 data shares"},
        BadValue{"parallel.dp=4 resources.devices=2", "4 devices"},
        BadValue{"parallel.zero_stage=4", "parallel.zero_stage is 4"},
        BadValue{"parallel.virtual_stages=0", "parallel.virtual_stages is 0"},
        BadValue{"parallel.micro_batch=0", "parallel.micro_batch is 0"},
        BadValue{"checkpoint.every_steps=0", "checkpoint.every_steps is 0"},
        BadValue{"checkpoint.keep=0", "checkpoint.keep is 0"},
        BadValue{"resources.devices=0", "resources.devices.min is 0"},
        BadValue{"resources.devices={min:\t2,max:\t1}",
                 "resources.devices.max is 1"},
        BadValue{"resources.memory_per_device=0", "memory_per_device is 0"},
        BadValue{"restart.max_attempts=0", "restart.max_attempts is 0"},
        BadValue{"restart.hang_timeout=0s", "restart.hang_timeout is 0"}));

struct LaterFeature {
  const char* changes;
  const char* key;
};

class LaterFeatureTest : public ::testing::TestWithParam<LaterFeature> {};

TEST_P(LaterFeatureTest, IsNotBuiltYet) {
  const absl::Status status = Validate(GetParam().changes);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith(GetParam().key));
  EXPECT_THAT(std::string(status.message()), HasSubstr("not built yet"));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, LaterFeatureTest,
    ::testing::Values(LaterFeature{"model={from:\tdir}", "model.from"},
                      LaterFeature{"data.tokenizer.kind=huggingface",
                                   "data.tokenizer.kind"},
                      LaterFeature{"resources.devices={min:\t1,max:\t2}",
                                   "resources.devices"}));

class GoodValueTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GoodValueTest, IsAccepted) {
  EXPECT_EQ(Validate(GetParam()), absl::OkStatus());
}

INSTANTIATE_TEST_SUITE_P(
    Rows, GoodValueTest,
    ::testing::Values(
        "parallel=auto", "parallel.dp=4 parallel.micro_batch=16",
        "parallel.schedule=zero_bubble", "parallel.cp_kind=ulysses",
        "parallel.zero_stage=2", "parallel.activation_checkpoint=full",
        "restart.max_attempts=3", "model.heads=8 model.kv_heads=2",
        "model.heads=5 model.head_width=16",
        "model.family=gpt2 model.heads=256", "train.steps=null train.epochs=2",
        "data.train.path=rows.jsonl task=classification",
        "data.train.path=folder task=classification",
        "data.train.path=ids.bin data.end_token=0",
        "data.tokenizer.kind=sentencepiece model.vocabulary=512",
        "train.schedule.name=wsd train.schedule.decay_steps=400",
        "train.optimizer.betas=[0,0]"));

TEST(ValidateJobSpecTest, EnumNumberFromTheWireIsRefused) {
  v1::JobSpec spec = SampleJob();
  spec.mutable_train()->set_precision(static_cast<v1::Precision>(77));
  const absl::Status status = ValidateJobSpec(spec);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("train.precision is 77"));
}

TEST(ValidateJobSpecTest, ActionWithoutItsSourceIsRefused) {
  v1::JobSpec spec;
  spec.set_name("g");
  spec.mutable_action()->mutable_generate();
  EXPECT_THAT(std::string(ValidateJobSpec(spec).message()),
              HasSubstr("action.source_job is missing"));
  spec.mutable_action()->set_source_job("kjv-1");
  EXPECT_EQ(ValidateJobSpec(spec), absl::OkStatus());
}

TEST(ValidateJobSpecTest, ClassifierCannotGenerate) {
  v1::JobSpec spec = *Changed("data.train.path=a.csv task=classification");
  spec.mutable_action()->set_source_job("x");
  spec.mutable_action()->mutable_generate();
  EXPECT_THAT(std::string(ValidateJobSpec(spec).message()),
              HasSubstr("needs a language model"));
}

TEST(FillDefaultsTest, LlamaGetsTheDocumentedSizes) {
  v1::JobSpec spec = SampleJob();
  FillDefaults(spec);
  EXPECT_EQ(spec.task(), v1::TASK_LANGUAGE_MODEL);
  EXPECT_EQ(spec.model().kv_heads(), 4);
  EXPECT_EQ(spec.model().head_width(), 64);
  // 8/3 x 256 is 682.7; the next multiple of 32 is 704.
  EXPECT_EQ(spec.model().feed_forward_width(), 704);
  EXPECT_FALSE(spec.model().tied_embeddings());
  EXPECT_FALSE(spec.model().attention_bias());
  EXPECT_EQ(spec.model().rope_theta(), 10000.0);
  EXPECT_FALSE(spec.model().has_vocabulary());
  EXPECT_EQ(spec.data().tokenizer().kind(), v1::TOKENIZER_KIND_BYTES);
  EXPECT_EQ(spec.train().precision(), v1::PRECISION_FP32);
  EXPECT_EQ(spec.train().optimizer().name(), v1::OPTIMIZER_NAME_ADAMW);
  EXPECT_THAT(spec.train().optimizer().betas(),
              ::testing::ElementsAre(0.9, 0.999));
  EXPECT_EQ(spec.train().optimizer().epsilon(), 1e-8);
  EXPECT_EQ(spec.train().optimizer().weight_decay(), 0.01);
  EXPECT_EQ(spec.train().schedule().name(), v1::SCHEDULE_NAME_CONSTANT);
  EXPECT_FALSE(spec.train().has_clip_grad_norm());
  EXPECT_EQ(spec.checkpoint().keep(), 2);
  EXPECT_FALSE(spec.has_parallel());
}

TEST(FillDefaultsTest, Gpt2GetsTheDocumentedSizes) {
  v1::JobSpec spec = *Changed("model.family=gpt2");
  FillDefaults(spec);
  EXPECT_EQ(spec.model().feed_forward_width(), 1024);
  EXPECT_TRUE(spec.model().tied_embeddings());
  EXPECT_TRUE(spec.model().attention_bias());
  EXPECT_EQ(spec.model().maximum_positions(), 128);
  EXPECT_FALSE(spec.model().has_rope_theta());
}

TEST(FillDefaultsTest, GivenValuesStay) {
  v1::JobSpec spec = *Changed(
      "model.tied_embeddings=true model.feed_forward_width=688 "
      "train.optimizer.weight_decay=0 checkpoint.keep=5");
  FillDefaults(spec);
  EXPECT_TRUE(spec.model().tied_embeddings());
  EXPECT_EQ(spec.model().feed_forward_width(), 688);
  EXPECT_EQ(spec.train().optimizer().weight_decay(), 0.0);
  EXPECT_EQ(spec.checkpoint().keep(), 5);
}

class IdempotentDefaultsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(IdempotentDefaultsTest, FilledSpecIsValidAndStays) {
  v1::JobSpec once = *Changed(GetParam());
  FillDefaults(once);
  EXPECT_EQ(ValidateJobSpec(once), absl::OkStatus());
  v1::JobSpec twice = once;
  FillDefaults(twice);
  EXPECT_EQ(once.DebugString(), twice.DebugString());
}

INSTANTIATE_TEST_SUITE_P(
    Rows, IdempotentDefaultsTest,
    ::testing::Values("", "model.family=gpt2", "parallel.dp=2",
                      "train.optimizer.name=sgd", "train.optimizer.name=lars",
                      "train.optimizer.name=lamb", "train.schedule.name=wsd",
                      "data.train.path=a.bin", "data.train.path=folder",
                      "data.train.path=a.csv task=classification",
                      "data.validation.fraction=0.1"));

TEST(SpecWarningsTest, RestartIsToldOf) {
  EXPECT_THAT(SpecWarnings(SampleJob()), IsEmpty());
  EXPECT_THAT(
      SpecWarnings(*Changed("restart.max_attempts=2")),
      ::testing::ElementsAre(HasSubstr("restart.max_attempts: accepted")));
  // This one works.
  EXPECT_THAT(SpecWarnings(*Changed("restart.hang_timeout=30s")), IsEmpty());
}

TEST(MakeModelSpecTest, VocabularyIsTheTokenizersUnlessGiven) {
  v1::JobSpec spec = SampleJob();
  FillDefaults(spec);
  EXPECT_EQ(MakeModelSpec(spec, 257, 0)->vocabulary, 257);
  spec.mutable_model()->set_vocabulary(512);
  EXPECT_EQ(MakeModelSpec(spec, 257, 0)->vocabulary, 512);
  spec.mutable_model()->set_vocabulary(256);
  EXPECT_THAT(std::string(MakeModelSpec(spec, 257, 0).status().message()),
              HasSubstr("model.vocabulary is 256"));
}

TEST(MakeModelSpecTest, OneLabelIsTooFewForClassification) {
  v1::JobSpec spec = *Changed("data.train.path=a.csv task=classification");
  FillDefaults(spec);
  EXPECT_EQ(MakeModelSpec(spec, 257, 2)->classes, 2);
  EXPECT_THAT(std::string(MakeModelSpec(spec, 257, 1).status().message()),
              HasSubstr("1 labels"));
}

TEST(MakeTrainingSpecTest, LinearScalingMultipliesTheRate) {
  v1::JobSpec spec = *Changed(
      "train.learning_rate_scaling.reference_batch=8 checkpoint.every_steps=7");
  FillDefaults(spec);
  const TrainingSpec training = MakeTrainingSpec(spec);
  EXPECT_DOUBLE_EQ(training.optimizer.learning_rate, 4e-3);
  EXPECT_EQ(training.steps, 400);
  EXPECT_FALSE(training.epochs.has_value());
  EXPECT_EQ(training.checkpoint_every, 7);
}

TEST(ComputeDTypeTest, FollowsPrecision) {
  EXPECT_EQ(ComputeDType(v1::PRECISION_FP32), DType::kFloat32);
  EXPECT_EQ(ComputeDType(v1::PRECISION_BF16), DType::kBFloat16);
}

TEST(CheckResumableTest, StepsAndRateMayChange) {
  EXPECT_EQ(CheckResumable(*Changed("train.steps=900 parallel.dp=2 name=b "
                                    "train.optimizer.learning_rate=1"),
                           SampleJob()),
            absl::OkStatus());
}

TEST(CheckResumableTest, DefaultWrittenOutIsNoDifference) {
  EXPECT_EQ(
      CheckResumable(*Changed("model.kv_heads=4 train.seed=0"), SampleJob()),
      absl::OkStatus());
}

class NotResumableTest : public ::testing::TestWithParam<BadValue> {};

TEST_P(NotResumableTest, NamesTheFirstDifference) {
  const absl::Status status =
      CheckResumable(*Changed(GetParam().changes), SampleJob());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().key));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, NotResumableTest,
    ::testing::Values(
        BadValue{"model.layers=5",
                 "model.layers is \"5\", but the job to "
                 "resume has \"4\""},
        BadValue{"model.dropout=0.1", "model.dropout"},
        BadValue{"data.train.path=b.txt", "data.train.path"},
        BadValue{"data.validation.fraction=0.5",
                 "data.validation is {\"path\":[]"},
        BadValue{"train.sequence_length=64", "train.sequence_length"},
        BadValue{"train.seed=2", "train.seed"},
        BadValue{"train.optimizer.name=sgd", "train.optimizer.name is \"sgd\""},
        BadValue{"data.tokenizer.kind=sentencepiece "
                 "data.tokenizer.vocabulary=300",
                 "data.tokenizer.kind"}));

}  // namespace
}  // namespace lockstep
