// FillDefaults: the defaults that design.md section 2 gives.
#include "common/spec/job_spec.h"
#include "common/spec/spec_checks.h"

namespace lockstep {
namespace {

// `8/3 x width`, rounded up to a multiple of 32.
int64_t SwiGluWidth(int64_t width) {
  constexpr int64_t kMultiple = 32;
  const int64_t exact = (8 * width + 2) / 3;
  return (exact + kMultiple - 1) / kMultiple * kMultiple;
}

void FillModel(v1::JobSpec& spec) {
  v1::ModelSpec& model = *spec.mutable_model();
  if (!model.from().empty()) return;
  const bool gpt2 = model.family() == v1::MODEL_FAMILY_GPT2;
  if (!model.has_kv_heads()) model.set_kv_heads(model.heads());
  if (!model.has_head_width() && model.heads() > 0) {
    model.set_head_width(model.width() / model.heads());
  }
  if (!model.has_feed_forward_width()) {
    model.set_feed_forward_width(gpt2 ? 4 * model.width()
                                      : SwiGluWidth(model.width()));
  }
  if (!model.has_tied_embeddings()) model.set_tied_embeddings(gpt2);
  if (!model.has_attention_bias()) model.set_attention_bias(gpt2);
  if (!model.has_norm_epsilon()) model.set_norm_epsilon(1e-5);
  if (gpt2) {
    if (!model.has_maximum_positions()) {
      model.set_maximum_positions(spec.train().sequence_length());
    }
  } else if (!model.has_rope_theta()) {
    model.set_rope_theta(10000.0);
  }
}

void FillSource(v1::DataSource& source, const v1::JobSpec& spec) {
  if (source.path().empty()) return;
  const v1::DataFormat format = spec_internal::FormatOf(source);
  source.set_format(format);
  if (format == v1::DATA_FORMAT_JSONL || format == v1::DATA_FORMAT_CSV) {
    if (source.text().empty()) source.set_text("text");
    if (source.label().empty()) source.set_label("label");
  }
  if (format == v1::DATA_FORMAT_TOKENS &&
      source.dtype() == v1::TOKEN_DTYPE_UNSPECIFIED) {
    constexpr int64_t kUint16Ids = 65'536;
    source.set_dtype(spec.model().vocabulary() > kUint16Ids
                         ? v1::TOKEN_DTYPE_UINT32
                         : v1::TOKEN_DTYPE_UINT16);
  }
}

void FillData(v1::JobSpec& spec) {
  v1::DataSpec& data = *spec.mutable_data();
  FillSource(*data.mutable_train(), spec);
  if (data.has_validation()) FillSource(*data.mutable_validation(), spec);
  const v1::DataFormat format = data.train().format();
  // Of a folder or glob, only the worker sees whether it holds token ids.
  if (!data.has_tokenizer() && (format == v1::DATA_FORMAT_UNSPECIFIED ||
                                format == v1::DATA_FORMAT_TOKENS)) {
    return;
  }
  v1::TokenizerSpec& tokenizer = *data.mutable_tokenizer();
  if (tokenizer.kind() == v1::TOKENIZER_KIND_UNSPECIFIED) {
    tokenizer.set_kind(v1::TOKENIZER_KIND_BYTES);
  }
  if (tokenizer.kind() == v1::TOKENIZER_KIND_SENTENCEPIECE &&
      tokenizer.path().empty() && !tokenizer.has_vocabulary()) {
    tokenizer.set_vocabulary(spec.model().vocabulary());
  }
}

void FillOptimizer(v1::OptimizerSpec& optimizer) {
  if (optimizer.name() == v1::OPTIMIZER_NAME_UNSPECIFIED) {
    optimizer.set_name(v1::OPTIMIZER_NAME_ADAMW);
  }
  const bool adaptive = optimizer.name() == v1::OPTIMIZER_NAME_ADAMW ||
                        optimizer.name() == v1::OPTIMIZER_NAME_LAMB;
  if (adaptive) {
    if (optimizer.betas().empty()) {
      optimizer.add_betas(0.9);
      optimizer.add_betas(0.999);
    }
    if (!optimizer.has_epsilon()) optimizer.set_epsilon(1e-8);
  } else if (!optimizer.has_momentum()) {
    optimizer.set_momentum(0.9);
  }
  if (!optimizer.has_weight_decay()) {
    optimizer.set_weight_decay(adaptive ? 0.01 : 0.0);
  }
  if (optimizer.name() == v1::OPTIMIZER_NAME_LARS &&
      !optimizer.has_trust_coefficient()) {
    optimizer.set_trust_coefficient(0.001);
  }
}

void FillTrain(v1::TrainSpec& train) {
  if (train.precision() == v1::PRECISION_UNSPECIFIED) {
    train.set_precision(v1::PRECISION_FP32);
  }
  FillOptimizer(*train.mutable_optimizer());
  v1::ScheduleSpec& schedule = *train.mutable_schedule();
  if (schedule.name() == v1::SCHEDULE_NAME_UNSPECIFIED) {
    schedule.set_name(v1::SCHEDULE_NAME_CONSTANT);
  }
  if (schedule.name() != v1::SCHEDULE_NAME_CONSTANT &&
      !schedule.has_minimum_ratio()) {
    schedule.set_minimum_ratio(0.0);
  }
}

// Axes that are not named are 1. `auto` (absent) and `micro_batch` are for the
// planner, who knows the cluster.
void FillParallel(v1::ParallelSpec& parallel) {
  if (!parallel.has_dp()) parallel.set_dp(1);
  if (!parallel.has_fsdp()) parallel.set_fsdp(1);
  if (!parallel.has_zero_stage()) parallel.set_zero_stage(3);
  if (!parallel.has_cp()) parallel.set_cp(1);
  if (parallel.cp_kind() == v1::CONTEXT_PARALLEL_KIND_UNSPECIFIED) {
    parallel.set_cp_kind(v1::CONTEXT_PARALLEL_KIND_RING);
  }
  if (!parallel.has_tp()) parallel.set_tp(1);
  if (!parallel.has_sequence_parallel()) parallel.set_sequence_parallel(true);
  if (!parallel.has_pp()) parallel.set_pp(1);
  if (parallel.schedule() == v1::PIPELINE_SCHEDULE_UNSPECIFIED) {
    parallel.set_schedule(v1::PIPELINE_SCHEDULE_1F1B);
  }
  if (!parallel.has_virtual_stages()) parallel.set_virtual_stages(1);
  if (parallel.activation_checkpoint() ==
      v1::ACTIVATION_CHECKPOINT_UNSPECIFIED) {
    parallel.set_activation_checkpoint(v1::ACTIVATION_CHECKPOINT_NONE);
  }
}

void FillAction(v1::Action& action) {
  if (!action.has_generate()) return;
  v1::GenerateAction& generate = *action.mutable_generate();
  if (!generate.has_max_tokens()) generate.set_max_tokens(100);
  if (!generate.has_temperature()) generate.set_temperature(0.8);
  if (!generate.has_top_k()) generate.set_top_k(40);
}

}  // namespace

void FillDefaults(v1::JobSpec& spec) {
  if (spec.has_action()) FillAction(*spec.mutable_action());
  // An action whose source job is not copied in yet has nothing else to fill.
  if (!spec.has_model()) return;
  if (spec.task() == v1::TASK_UNSPECIFIED) {
    spec.set_task(v1::TASK_LANGUAGE_MODEL);
  }
  FillModel(spec);
  FillData(spec);
  FillTrain(*spec.mutable_train());
  if (spec.has_parallel()) FillParallel(*spec.mutable_parallel());
  if (!spec.checkpoint().has_keep()) spec.mutable_checkpoint()->set_keep(2);
}

}  // namespace lockstep
