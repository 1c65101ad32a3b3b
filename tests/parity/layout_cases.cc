#include "tests/parity/layout_cases.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace testing {
namespace {

constexpr int kSteps = 4;

// Tensor parallelism, with and without cutting the sequence: heads,
// feed-forward width, vocabulary and rows that don't divide evenly, and mixes.
std::vector<LayoutCase> TensorCases() {
  std::vector<LayoutCase> cases;
  const auto add = [&](const std::string& what, const LayoutRun& run) {
    cases.push_back({absl::StrCat(what, NameOf(run.layout)), run});
  };
  for (const auto& [family, word] :
       {std::pair{v1::MODEL_FAMILY_GPT2, "Gpt2"},
        std::pair{v1::MODEL_FAMILY_LLAMA, "Llama"}}) {
    for (const bool sequence : {false, true}) {
      const auto make = [&, family = family](int64_t dp, int64_t fsdp,
                                             int64_t stage, int64_t tp,
                                             int64_t micro_batch) {
        LayoutRun run = MakeRun(family, dp, fsdp, stage, micro_batch);
        run.layout.set_tp(tp);
        run.layout.set_sequence_parallel(sequence);
        if (tp == 3) {
          // 6 heads of 8, 3 key heads of them in llama: 2 and 1 a rank.
          run.model.heads = 6;
          run.model.head_width = 8;
          run.model.kv_heads = family == v1::MODEL_FAMILY_LLAMA ? 3 : 6;
        }
        return run;
      };
      add(word, make(1, 1, 3, 2, 4));
      add(word, make(1, 1, 3, 3, 3));
      add(word, make(2, 1, 3, 2, 2));
      for (const int64_t stage : {1, 2, 3}) add(word, make(1, 2, stage, 2, 3));
      LayoutRun uneven = make(1, 1, 3, 2, 10);
      uneven.model.heads = 5;
      uneven.model.kv_heads = 5;
      uneven.model.head_width = 10;
      add(absl::StrCat(word, "FiveHeads"), uneven);
      LayoutRun few = make(1, 3, 3, 2, 1);
      few.global_batch = 2;
      add(absl::StrCat(word, "FewSamples"), few);
      LayoutRun bf16 = make(1, 2, 3, 2, 2);
      bf16.training.precision = v1::PRECISION_BF16;
      add(absl::StrCat(word, "Bf16"), bf16);
      LayoutRun classifier = make(2, 1, 3, 2, 2);
      classifier.model = SmallModel(family, v1::TASK_CLASSIFICATION);
      add(absl::StrCat(word, "Classifier"), classifier);
      LayoutRun lamb = make(1, 2, 2, 2, 3);
      lamb.training.optimizer.name = v1::OPTIMIZER_NAME_LAMB;
      lamb.training.optimizer.learning_rate = 0.05;
      add(absl::StrCat(word, "Lamb"), lamb);
      LayoutRun lars = make(1, 1, 2, 2, 3);
      lars.training.optimizer.name = v1::OPTIMIZER_NAME_LARS;
      lars.training.optimizer.learning_rate = 10.0;
      add(absl::StrCat(word, "Lars"), lars);
      LayoutRun tied = make(1, 1, 3, 2, 4);
      tied.model.tied_embeddings = !tied.model.tied_embeddings;
      add(absl::StrCat(word, tied.model.tied_embeddings ? "Tied" : "Untied"),
          tied);
    }
  }
  return cases;
}

// Pipelines: every schedule, with more and fewer micro-batches than stages,
// stages that differ, embedding and head alone, ties, and mixes.
std::vector<LayoutCase> PipelineCases() {
  std::vector<LayoutCase> cases;
  const auto add = [&](const std::string& what, const LayoutRun& run) {
    cases.push_back({absl::StrCat(what, NameOf(run.layout)), run});
  };
  for (const auto& [family, word] :
       {std::pair{v1::MODEL_FAMILY_GPT2, "Gpt2"},
        std::pair{v1::MODEL_FAMILY_LLAMA, "Llama"}}) {
    for (const v1::PipelineSchedule schedule :
         {v1::PIPELINE_SCHEDULE_GPIPE, v1::PIPELINE_SCHEDULE_1F1B,
          v1::PIPELINE_SCHEDULE_INTERLEAVED_1F1B,
          v1::PIPELINE_SCHEDULE_ZERO_BUBBLE}) {
      const bool interleaved =
          schedule == v1::PIPELINE_SCHEDULE_INTERLEAVED_1F1B;
      const auto make = [&, family = family](int64_t dp, int64_t fsdp,
                                             int64_t stage, int64_t pp,
                                             int64_t micro_batch) {
        LayoutRun run = MakeRun(family, dp, fsdp, stage, micro_batch);
        run.layout.set_pp(pp);
        run.layout.set_schedule(schedule);
        run.layout.set_virtual_stages(interleaved ? 2 : 1);
        run.model.layers = interleaved ? 5 : 3;
        return run;
      };
      add(word, make(1, 1, 3, 2, 3));
      add(word, make(1, 1, 3, 3, 1));
      // One micro-batch.
      add(word, make(1, 1, 3, 2, 10));
      add(word, make(2, 1, 3, 2, 1));
      for (const int64_t stage : {1, 2, 3}) add(word, make(1, 2, stage, 2, 2));
      LayoutRun tied = make(1, 2, 2, 2, 3);
      tied.model.tied_embeddings = !tied.model.tied_embeddings;
      add(absl::StrCat(word, tied.model.tied_embeddings ? "Tied" : "Untied"),
          tied);
      LayoutRun tensor = make(1, 1, 3, 2, 3);
      tensor.layout.set_tp(2);
      tensor.layout.set_sequence_parallel(true);
      add(word, tensor);
      LayoutRun classifier = make(1, 1, 3, 2, 2);
      const int64_t layers = classifier.model.layers;
      classifier.model = SmallModel(family, v1::TASK_CLASSIFICATION);
      classifier.model.layers = layers;
      add(absl::StrCat(word, "Classifier"), classifier);
      LayoutRun full = make(1, 2, 3, 2, 2);
      full.layout.set_activation_checkpoint(v1::ACTIVATION_CHECKPOINT_FULL);
      add(word, full);
      LayoutRun selective = make(1, 1, 3, 2, 2);
      selective.layout.set_activation_checkpoint(
          v1::ACTIVATION_CHECKPOINT_SELECTIVE);
      add(word, selective);
      LayoutRun bf16 = make(1, 1, 3, 2, 2);
      bf16.training.precision = v1::PRECISION_BF16;
      add(absl::StrCat(word, "Bf16"), bf16);
      LayoutRun lamb = make(1, 2, 1, 2, 3);
      lamb.training.optimizer.name = v1::OPTIMIZER_NAME_LAMB;
      lamb.training.optimizer.learning_rate = 0.05;
      add(absl::StrCat(word, "Lamb"), lamb);
      if (interleaved) continue;
      // Embedding, each block and head alone.
      add(word, make(1, 1, 3, 5, 2));
      LayoutRun few = make(1, 3, 3, 2, 1);
      few.global_batch = 2;
      add(absl::StrCat(word, "FewSamples"), few);
    }
    // All together, on 8 ranks.
    LayoutRun all = MakeRun(family, 1, 2, 3, 2);
    all.layout.set_pp(2);
    all.layout.set_tp(2);
    all.layout.set_sequence_parallel(true);
    all.layout.set_schedule(v1::PIPELINE_SCHEDULE_ZERO_BUBBLE);
    add(word, all);
    LayoutRun hybrid = MakeRun(family, 2, 2, 2, 1);
    hybrid.layout.set_pp(2);
    hybrid.layout.set_schedule(v1::PIPELINE_SCHEDULE_1F1B);
    add(word, hybrid);
  }
  return cases;
}

// Context parallelism of both kinds: several segments, of lengths that don't
// divide, across chunks; and mixes.
std::vector<LayoutCase> ContextCases() {
  std::vector<LayoutCase> cases;
  const auto add = [&](const std::string& what, const LayoutRun& run) {
    cases.push_back({absl::StrCat(what, NameOf(run.layout)), run});
  };
  for (const auto& [family, word] :
       {std::pair{v1::MODEL_FAMILY_GPT2, "Gpt2"},
        std::pair{v1::MODEL_FAMILY_LLAMA, "Llama"}}) {
    for (const v1::ContextParallelKind kind :
         {v1::CONTEXT_PARALLEL_KIND_RING, v1::CONTEXT_PARALLEL_KIND_ULYSSES}) {
      const auto make = [&, family = family](int64_t dp, int64_t fsdp,
                                             int64_t stage, int64_t cp,
                                             int64_t micro_batch) {
        LayoutRun run = MakeRun(family, dp, fsdp, stage, micro_batch);
        run.layout.set_cp(cp);
        run.layout.set_cp_kind(kind);
        if (cp == 3) {
          run.model.heads = 6;
          run.model.head_width = 8;
          run.model.kv_heads = family == v1::MODEL_FAMILY_LLAMA ? 3 : 6;
        }
        return run;
      };
      for (const int64_t stage : {1, 2, 3}) add(word, make(1, 1, stage, 2, 3));
      add(word, make(1, 1, 3, 3, 10));
      add(word, make(2, 1, 3, 2, 1));
      add(word, make(1, 2, 2, 2, 2));
      LayoutRun long_sequence = make(1, 1, 3, 2, 1);
      long_sequence.length = 39;
      long_sequence.global_batch = 4;
      add(absl::StrCat(word, "Long"), long_sequence);
      LayoutRun tensor = make(1, 1, 3, 2, 3);
      tensor.layout.set_tp(2);
      tensor.layout.set_sequence_parallel(true);
      tensor.model.kv_heads = 4;
      add(word, tensor);
      LayoutRun pipeline = make(1, 1, 3, 2, 2);
      pipeline.layout.set_pp(2);
      pipeline.layout.set_schedule(v1::PIPELINE_SCHEDULE_1F1B);
      add(word, pipeline);
      LayoutRun bf16 = make(1, 1, 3, 2, 4);
      bf16.training.precision = v1::PRECISION_BF16;
      add(absl::StrCat(word, "Bf16"), bf16);
      LayoutRun lamb = make(1, 2, 3, 2, 3);
      lamb.training.optimizer.name = v1::OPTIMIZER_NAME_LAMB;
      lamb.training.optimizer.learning_rate = 0.05;
      add(absl::StrCat(word, "Lamb"), lamb);
      LayoutRun selective = make(1, 1, 3, 2, 3);
      selective.layout.set_activation_checkpoint(
          v1::ACTIVATION_CHECKPOINT_SELECTIVE);
      add(word, selective);
      LayoutRun full = make(1, 1, 3, 2, 3);
      full.layout.set_activation_checkpoint(v1::ACTIVATION_CHECKPOINT_FULL);
      add(word, full);
    }
    LayoutRun four = MakeRun(family, 1, 1, 3, 2);
    four.layout.set_cp(4);
    four.layout.set_cp_kind(v1::CONTEXT_PARALLEL_KIND_RING);
    add(word, four);
    LayoutRun all = MakeRun(family, 1, 1, 3, 2);
    all.layout.set_cp(2);
    all.layout.set_cp_kind(v1::CONTEXT_PARALLEL_KIND_RING);
    all.layout.set_tp(2);
    all.layout.set_sequence_parallel(true);
    all.layout.set_pp(2);
    all.layout.set_schedule(v1::PIPELINE_SCHEDULE_ZERO_BUBBLE);
    add(word, all);
  }
  return cases;
}

// Data parallelism and sharded states.
std::vector<LayoutCase> ShardedCases() {
  std::vector<LayoutCase> cases;
  const auto add = [&](const std::string& what, const LayoutRun& run) {
    cases.push_back({absl::StrCat(what, NameOf(run.layout)), run});
  };
  for (const auto& [family, word] :
       {std::pair{v1::MODEL_FAMILY_GPT2, "Gpt2"},
        std::pair{v1::MODEL_FAMILY_LLAMA, "Llama"}}) {
    add(word, MakeRun(family, 3, 1, 3, 2));
    for (const int64_t stage : {1, 2, 3}) {
      add(word, MakeRun(family, 1, 2, stage, 5));
      // 10 samples on 4 ranks: some have a micro-batch less than others.
      add(word, MakeRun(family, 1, 4, stage, 1));
      add(word, MakeRun(family, 2, 2, stage, 1));
    }
    // No segment divides by 5.
    add(word, MakeRun(family, 1, 5, 3, 1));
    // More ranks than samples: some ranks only take part.
    LayoutRun few = MakeRun(family, 2, 3, 3, 1);
    few.global_batch = 5;
    add(absl::StrCat(word, "FewSamples"), few);
    for (const int64_t stage : {1, 2, 3}) {
      LayoutRun bf16 = MakeRun(family, 1, 3, stage, 2);
      bf16.training.precision = v1::PRECISION_BF16;
      add(absl::StrCat(word, "Bf16"), bf16);
      LayoutRun classifier = MakeRun(family, 1, 3, stage, 2);
      classifier.model = SmallModel(family, v1::TASK_CLASSIFICATION);
      add(absl::StrCat(word, "Classifier"), classifier);
      LayoutRun lamb = MakeRun(family, 2, 2, stage, 3);
      lamb.training.optimizer.name = v1::OPTIMIZER_NAME_LAMB;
      // Large enough that a wrong trust ratio shows in the losses.
      lamb.training.optimizer.learning_rate = 0.05;
      add(absl::StrCat(word, "Lamb"), lamb);
      LayoutRun lars = MakeRun(family, 1, 3, stage, 4);
      lars.training.optimizer.name = v1::OPTIMIZER_NAME_LARS;
      lars.training.optimizer.learning_rate = 10.0;
      add(absl::StrCat(word, "Lars"), lars);
      LayoutRun tied = MakeRun(family, 1, 3, stage, 4);
      tied.model.tied_embeddings = !tied.model.tied_embeddings;
      add(absl::StrCat(word, tied.model.tied_embeddings ? "Tied" : "Untied"),
          tied);
    }
  }
  return cases;
}

// What a layout is made of: what is to be seen together in some case.
std::vector<std::string> FeaturesOf(const LayoutRun& run) {
  const v1::Layout& layout = run.layout;
  std::vector<std::string> features = {
      absl::StrCat("family", run.model.family)};
  const auto add = [&](bool has, std::string feature) {
    if (has) features.push_back(std::move(feature));
  };
  add(layout.dp() > 1, "dp");
  add(layout.fsdp() * layout.cp() > 1,
      absl::StrCat("zero", layout.zero_stage()));
  add(layout.fsdp() > 1, "fsdp");
  add(layout.tp() > 1, layout.sequence_parallel() ? "tp-seq" : "tp");
  add(layout.cp() > 1, absl::StrCat("cp", layout.cp_kind()));
  add(layout.pp() > 1, absl::StrCat("pp", layout.schedule()));
  add(layout.activation_checkpoint() > v1::ACTIVATION_CHECKPOINT_NONE,
      absl::StrCat("checkpoint", layout.activation_checkpoint()));
  add(run.training.precision == v1::PRECISION_BF16, "bf16");
  add(run.model.task == v1::TASK_CLASSIFICATION, "classifier");
  add(run.training.optimizer.name != v1::OPTIMIZER_NAME_ADAMW,
      absl::StrCat("optimizer", run.training.optimizer.name));
  add(!run.model.tied_embeddings, "untied");
  return features;
}

// Features, and pairs and triples of them.
std::set<std::string> TogetherIn(const LayoutRun& run) {
  const std::vector<std::string> features = FeaturesOf(run);
  std::set<std::string> together;
  for (size_t i = 0; i < features.size(); ++i) {
    for (size_t j = i; j < features.size(); ++j) {
      for (size_t k = j; k < features.size(); ++k) {
        together.insert(
            absl::StrCat(features[i], " ", features[j], " ", features[k]));
      }
    }
  }
  return together;
}

}  // namespace

LayoutRun MakeRun(v1::ModelFamily family, int64_t dp, int64_t fsdp,
                  int64_t zero_stage, int64_t micro_batch) {
  LayoutRun run;
  run.model = SmallModel(family, v1::TASK_LANGUAGE_MODEL);
  run.training.seed = 5;
  run.training.optimizer.learning_rate = 1e-3;
  run.training.clip_grad_norm = 0.5;
  run.layout = OneRank(micro_batch);
  run.layout.set_dp(dp);
  run.layout.set_fsdp(fsdp);
  run.layout.set_zero_stage(zero_stage);
  run.steps = kSteps;
  return run;
}

std::vector<LayoutCase> AllCases() {
  std::vector<LayoutCase> cases;
  for (const auto& some :
       {ShardedCases(), TensorCases(), PipelineCases(), ContextCases()}) {
    cases.insert(cases.end(), some.begin(), some.end());
  }
  return cases;
}

std::vector<LayoutCase> Covering(std::vector<LayoutCase> cases, size_t count) {
  std::vector<LayoutCase> chosen;
  std::set<std::string> seen;
  while (chosen.size() < count && !cases.empty()) {
    // The case that shows most that hasn't been seen together; then the first.
    const auto gain = [&](const LayoutCase& layout) {
      const std::set<std::string> together = TogetherIn(layout.run);
      return std::count_if(
          together.begin(), together.end(),
          [&](const std::string& what) { return seen.count(what) == 0; });
    };
    const auto best =
        std::max_element(cases.begin(), cases.end(),
                         [&](const LayoutCase& a, const LayoutCase& b) {
                           return gain(a) < gain(b);
                         });
    seen.merge(TogetherIn(best->run));
    chosen.push_back(*best);
    cases.erase(best);
  }
  return chosen;
}

}  // namespace testing
}  // namespace lockstep
