#include "tests/bench/bench_model.h"

#include "absl/strings/str_cat.h"

namespace lockstep {

std::vector<std::string> BenchModel::PeerArguments() const {
  const auto number = [](int64_t value) { return std::to_string(value); };
  return {"--family",
          model.family == v1::MODEL_FAMILY_GPT2 ? "gpt2" : "llama",
          "--layers",
          number(model.layers),
          "--width",
          number(model.width),
          "--heads",
          number(model.heads),
          "--kv-heads",
          number(model.kv_heads),
          "--hidden",
          number(model.feed_forward_width),
          "--vocabulary",
          number(model.vocabulary),
          "--classes",
          number(model.classes),
          "--batch",
          number(training.global_batch),
          "--sequence",
          number(training.sequence_length),
          "--precision",
          training.precision == v1::PRECISION_BF16 ? "bf16" : "fp32"};
}

absl::StatusOr<BenchModel> FindBenchModel(const std::string& name,
                                          Precision precision) {
  BenchModel bench;
  bench.name = name;
  ModelSpec& model = bench.model;
  TrainingSpec& training = bench.training;
  training.precision = precision;
  training.optimizer.learning_rate = 3e-4;
  training.optimizer.weight_decay = 0.1;
  training.clip_grad_norm = 1.0;
  training.steps = 1 << 20;
  if (name == "gpt2-124m") {
    model.family = v1::MODEL_FAMILY_GPT2;
    model.layers = 12;
    model.width = 768;
    model.heads = model.kv_heads = 12;
    model.head_width = 64;
    model.feed_forward_width = 3072;
    model.vocabulary = 50257;
    model.maximum_positions = 1024;
    training.global_batch = 4;
    training.sequence_length = 512;
    return bench;
  }
  if (name == "kjv" || name == "verses") {
    model.family = v1::MODEL_FAMILY_LLAMA;
    model.layers = 4;
    model.width = 256;
    model.heads = model.kv_heads = 4;
    model.head_width = 64;
    model.feed_forward_width = 688;
    model.vocabulary = 2048;
    model.attention_bias = false;
    training.global_batch = 32;
    training.sequence_length = 128;
    if (name == "verses") {
      model.task = v1::TASK_CLASSIFICATION;
      model.classes = 2;
      model.layers = 2;
      model.width = 128;
      model.head_width = 32;
      model.feed_forward_width = 352;
      training.sequence_length = 64;
    }
    return bench;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no bench model ", name,
                   "; there are gpt2-124m, kjv and "
                   "verses"));
}

}  // namespace lockstep
