#include "coordinator/plan/layout_resolver.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/bytes.h"
#include "common/model/memory_count.h"
#include "common/model/model_part.h"
#include "common/model/pipeline_stages.h"
#include "common/spec/job_spec.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// The 256 bytes and an end token.
constexpr int64_t kByteVocabulary = 257;
// For a tokenizer file that only the worker can read: SentencePiece's usual.
constexpr int64_t kGuessedVocabulary = 32'000;
// For label lists, which only the worker can read.
constexpr int64_t kGuessedClasses = 2;
// So that products of degrees stay far from overflow.
constexpr int64_t kMostDevices = 1 << 20;

struct Axis {
  const char* key;
  int64_t degree;
};

int64_t DegreeOr1(bool present, int64_t degree) { return present ? degree : 1; }

// Ranks by axis.
struct Degrees {
  int64_t dp = 1;
  int64_t fsdp = 1;
  int64_t cp = 1;
  int64_t tp = 1;
  int64_t pp = 1;
  // Ranks that see different samples, and all.
  int64_t shares() const { return dp * fsdp; }
  int64_t ranks() const { return dp * fsdp * cp * tp * pp; }
  // "dp 2 x fsdp 4": those above 1, or dp.
  std::string ToString() const {
    std::string text;
    for (const Axis& axis : {Axis{"dp", dp}, Axis{"fsdp", fsdp}, Axis{"cp", cp},
                             Axis{"tp", tp}, Axis{"pp", pp}}) {
      if (axis.degree == 1) continue;
      absl::StrAppend(&text, text.empty() ? "" : " x ", axis.key, " ",
                      axis.degree);
    }
    return text.empty() ? "dp 1" : text;
  }
};

absl::Status CheckDegree(const char* key, int64_t degree) {
  if (degree >= 1 && degree <= kMostDevices) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, " is ", degree, ", want 1 to ", kMostDevices));
}

// The degrees, once the job's devices are known.
absl::StatusOr<Degrees> ResolveDegrees(const v1::JobSpec& spec, int64_t devices,
                                       DeviceUse use) {
  const int64_t global_batch = spec.train().global_batch();
  if (!spec.has_parallel()) {
    if (devices <= global_batch) return Degrees{.dp = devices};
    // Ranks without a sequence to train on would be of no use.
    if (use == DeviceUse::kAtMost) return Degrees{.dp = global_batch};
    return absl::InvalidArgumentError(absl::StrCat(
        "resources.devices is ", devices, ", but train.global_batch is ",
        global_batch, ": each device needs at least one sequence of a batch"));
  }
  const v1::ParallelSpec& parallel = spec.parallel();
  const Degrees degrees = {DegreeOr1(parallel.has_dp(), parallel.dp()),
                           DegreeOr1(parallel.has_fsdp(), parallel.fsdp()),
                           DegreeOr1(parallel.has_cp(), parallel.cp()),
                           DegreeOr1(parallel.has_tp(), parallel.tp()),
                           DegreeOr1(parallel.has_pp(), parallel.pp())};
  RETURN_IF_ERROR(CheckDegree("parallel.dp", degrees.dp));
  RETURN_IF_ERROR(CheckDegree("parallel.fsdp", degrees.fsdp));
  RETURN_IF_ERROR(CheckDegree("parallel.cp", degrees.cp));
  RETURN_IF_ERROR(CheckDegree("parallel.tp", degrees.tp));
  RETURN_IF_ERROR(CheckDegree("parallel.pp", degrees.pp));
  if (degrees.shares() > global_batch) {
    const bool one = degrees.fsdp == 1 || degrees.dp == 1;
    return absl::InvalidArgumentError(absl::StrCat(
        one ? (degrees.fsdp == 1 ? "parallel.dp" : "parallel.fsdp")
            : "parallel.dp x parallel.fsdp",
        " is ", degrees.shares(), ", but train.global_batch is ", global_batch,
        ": each rank that sees its own samples needs at least one sequence of "
        "a batch; at most ",
        global_batch, " would do"));
  }
  if (degrees.ranks() > devices) {
    return absl::FailedPreconditionError(absl::StrCat(
        "parallel asks for ", degrees.ToString(), ", ", degrees.ranks(),
        " ranks, but there are only ", devices, " devices"));
  }
  if (degrees.ranks() < devices && use == DeviceUse::kExact) {
    return absl::InvalidArgumentError(absl::StrCat(
        "resources.devices is ", devices, ", but the degrees of parallel make ",
        degrees.ranks(), " ranks"));
  }
  return degrees;
}

// Schedule and virtual stages fit each other and the model.
absl::Status CheckPipeline(const v1::ParallelSpec& parallel,
                           const ModelSpec& model, const Degrees& degrees) {
  const int64_t chunks =
      DegreeOr1(parallel.has_virtual_stages(), parallel.virtual_stages());
  RETURN_IF_ERROR(CheckDegree("parallel.virtual_stages", chunks));
  if (chunks > 1 && degrees.pp == 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parallel.virtual_stages is ", chunks,
        ", but parallel.pp is 1: stages of one rank can't be interleaved"));
  }
  if (chunks > 1 &&
      parallel.schedule() != v1::PIPELINE_SCHEDULE_INTERLEAVED_1F1B) {
    return absl::InvalidArgumentError(
        absl::StrCat("parallel.virtual_stages is ", chunks,
                     ", which takes parallel.schedule interleaved_1f1b"));
  }
  return CheckPipelineParallel(model, degrees.pp, chunks);
}

std::string DescribeMemory(const v1::MemoryReport& memory) {
  return absl::StrCat(FormatBytes(memory.peak_bytes()), " (parameters ",
                      FormatBytes(memory.parameters_bytes()), ", gradients ",
                      FormatBytes(memory.gradients_bytes()), ", optimizer ",
                      FormatBytes(memory.optimizer_bytes()), ", activations ",
                      FormatBytes(memory.activations_bytes()), ", buffers ",
                      FormatBytes(memory.buffers_bytes()), ")");
}

// What to change so that a rank fits its limit: the smallest change that does.
std::string WhatWouldFit(const ModelSpec& model, const TrainingSpec& training,
                         v1::Layout layout, int64_t devices, uint64_t limit) {
  const auto fits = [&](const v1::Layout& candidate) {
    return CountMemory(model, training, candidate).peak_bytes() <= limit;
  };
  for (v1::Layout smaller = layout; smaller.micro_batch() > 1;) {
    smaller.set_micro_batch((smaller.micro_batch() + 1) / 2);
    if (fits(smaller)) {
      return absl::StrCat("parallel.micro_batch ", smaller.micro_batch(),
                          " would do");
    }
  }
  const int64_t least = CountMemory(model, training, layout).peak_bytes();
  layout.set_micro_batch(1);
  layout.set_zero_stage(3);
  layout.set_dp(1);
  for (int64_t fsdp = 2; fsdp <= std::max<int64_t>(devices, 1024); fsdp *= 2) {
    if (fsdp > training.global_batch) break;
    layout.set_fsdp(fsdp);
    if (!fits(layout)) continue;
    std::string others;
    for (const Axis& axis : {Axis{"cp", layout.cp()}, Axis{"tp", layout.tp()},
                             Axis{"pp", layout.pp()}}) {
      if (axis.degree > 1) {
        absl::StrAppend(&others, ", ", axis.key, ": ", axis.degree);
      }
    }
    return absl::StrCat(
        "parallel {fsdp: ", fsdp, others,
        ", micro_batch: 1}, which shards its states, would "
        "need ",
        FormatBytes(CountMemory(model, training, layout).peak_bytes()));
  }
  return absl::StrCat("devices with at least ", FormatBytes(least),
                      " would do");
}

uint64_t LimitOf(const v1::JobSpec& spec, const v1::ClusterShape& shape) {
  const uint64_t asked = spec.resources().memory_per_device().bytes();
  const uint64_t present = shape.memory_per_device_bytes();
  if (asked == 0 || present == 0) return std::max(asked, present);
  return std::min(asked, present);
}

}  // namespace

int64_t RequestedDevices(const v1::JobSpec& spec) {
  if (spec.resources().has_devices()) return spec.resources().devices().max();
  if (!spec.has_parallel()) return 1;
  const v1::ParallelSpec& parallel = spec.parallel();
  int64_t product = 1;
  for (const int64_t degree : {DegreeOr1(parallel.has_dp(), parallel.dp()),
                               DegreeOr1(parallel.has_fsdp(), parallel.fsdp()),
                               DegreeOr1(parallel.has_cp(), parallel.cp()),
                               DegreeOr1(parallel.has_tp(), parallel.tp()),
                               DegreeOr1(parallel.has_pp(), parallel.pp())}) {
    product *= std::clamp<int64_t>(degree, 1, kMostDevices);
    product = std::min(product, kMostDevices);
  }
  return product;
}

int64_t EstimatedVocabulary(const v1::JobSpec& spec) {
  if (spec.model().has_vocabulary()) return spec.model().vocabulary();
  const v1::TokenizerSpec& tokenizer = spec.data().tokenizer();
  if (tokenizer.has_vocabulary()) return tokenizer.vocabulary();
  switch (tokenizer.kind()) {
    case v1::TOKENIZER_KIND_BYTES:
      return kByteVocabulary;
    case v1::TOKENIZER_KIND_UNSPECIFIED:
      return spec.data().train().format() == v1::DATA_FORMAT_TOKENS
                 ? kGuessedVocabulary
                 : kByteVocabulary;
    case v1::TOKENIZER_KIND_SENTENCEPIECE:
    case v1::TOKENIZER_KIND_HUGGINGFACE:
    case v1::TokenizerKind_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::TokenizerKind_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return kGuessedVocabulary;
}

absl::StatusOr<v1::ResolvedLayout> ResolveLayout(const v1::JobSpec& spec,
                                                 const v1::ClusterShape& shape,
                                                 DeviceUse use) {
  if (shape.devices() < 1 || shape.devices() > kMostDevices) {
    return absl::InvalidArgumentError(
        absl::StrCat("the job is to run on ", shape.devices(),
                     " devices, want 1 to ", kMostDevices));
  }
  ASSIGN_OR_RETURN(const Degrees degrees,
                   ResolveDegrees(spec, shape.devices(), use));
  const int64_t global_batch = spec.train().global_batch();
  const int64_t share =
      (global_batch + degrees.shares() - 1) / degrees.shares();

  v1::ResolvedLayout resolved;
  resolved.set_world_size(degrees.ranks());
  v1::Layout& layout = *resolved.mutable_layout();
  layout.set_dp(degrees.dp);
  layout.set_fsdp(degrees.fsdp);
  layout.set_zero_stage(
      spec.parallel().has_zero_stage() ? spec.parallel().zero_stage() : 3);
  layout.set_cp(degrees.cp);
  layout.set_cp_kind(spec.parallel().cp_kind() ==
                             v1::CONTEXT_PARALLEL_KIND_UNSPECIFIED
                         ? v1::CONTEXT_PARALLEL_KIND_RING
                         : spec.parallel().cp_kind());
  layout.set_tp(degrees.tp);
  layout.set_sequence_parallel(spec.parallel().has_sequence_parallel()
                                   ? spec.parallel().sequence_parallel()
                                   : true);
  layout.set_pp(degrees.pp);
  layout.set_schedule(spec.parallel().schedule() ==
                              v1::PIPELINE_SCHEDULE_UNSPECIFIED
                          ? v1::PIPELINE_SCHEDULE_1F1B
                          : spec.parallel().schedule());
  layout.set_virtual_stages(DegreeOr1(spec.parallel().has_virtual_stages(),
                                      spec.parallel().virtual_stages()));
  layout.set_activation_checkpoint(
      spec.parallel().activation_checkpoint() ==
              v1::ACTIVATION_CHECKPOINT_UNSPECIFIED
          ? v1::ACTIVATION_CHECKPOINT_NONE
          : spec.parallel().activation_checkpoint());
  const bool by_hand = spec.parallel().has_micro_batch();
  layout.set_micro_batch(
      by_hand ? std::min(spec.parallel().micro_batch(), share)
      : degrees.pp == 1
          ? share
          // Twice as many micro-batches as stages: most of the time is work.
          : std::max<int64_t>(1, share / (2 * degrees.pp)));

  const int64_t classes =
      spec.task() == v1::TASK_CLASSIFICATION ? kGuessedClasses : 0;
  ASSIGN_OR_RETURN(const ModelSpec model,
                   MakeModelSpec(spec, EstimatedVocabulary(spec), classes));
  RETURN_IF_ERROR(CheckTensorParallel(model, degrees.tp));
  RETURN_IF_ERROR(CheckContextParallel(model, layout));
  RETURN_IF_ERROR(CheckPipeline(spec.parallel(), model, degrees));
  const TrainingSpec training = MakeTrainingSpec(spec);
  const uint64_t limit = LimitOf(spec, shape);
  for (;;) {
    const v1::MemoryReport memory = CountMemory(model, training, layout);
    if (limit == 0 || memory.peak_bytes() <= limit) {
      *resolved.mutable_predicted_memory() = memory;
      return resolved;
    }
    if (by_hand || layout.micro_batch() == 1) {
      return absl::FailedPreconditionError(absl::StrCat(
          "no layout fits: with micro_batch ", layout.micro_batch(),
          by_hand ? " (given)" : "", " and ", degrees.ToString(),
          " a rank needs ", DescribeMemory(memory), ", its limit is ",
          FormatBytes(limit), "; ",
          WhatWouldFit(model, training, layout, shape.devices(), limit)));
    }
    layout.set_micro_batch((layout.micro_batch() + 1) / 2);
  }
}

}  // namespace lockstep
