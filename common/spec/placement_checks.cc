// The sections parallel, checkpoint, resources and restart of a job file, and
// the action of a job that is made from another.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/spec/spec_checks.h"
#include "common/status_macros.h"

namespace lockstep::spec_internal {
namespace {

constexpr int64_t kMostAttempts = 1'000'000;
// A year; longer ones are mistakes.
constexpr int64_t kMostHangSeconds = 31'536'000;

struct Axis {
  const char* key;
  int64_t degree;
};

std::array<Axis, 5> AxesOf(const v1::ParallelSpec& parallel) {
  return {{{"parallel.dp", parallel.has_dp() ? parallel.dp() : 1},
           {"parallel.fsdp", parallel.has_fsdp() ? parallel.fsdp() : 1},
           {"parallel.cp", parallel.has_cp() ? parallel.cp() : 1},
           {"parallel.tp", parallel.has_tp() ? parallel.tp() : 1},
           {"parallel.pp", parallel.has_pp() ? parallel.pp() : 1}}};
}

absl::Status CheckParallel(const v1::JobSpec& spec) {
  const v1::ParallelSpec& parallel = spec.parallel();
  const std::array<Axis, 5> axes = AxesOf(parallel);
  int64_t world_size = 1;
  for (const auto& [key, degree] : axes) {
    RETURN_IF_ERROR(CheckRange(key, degree, 1, kMostDevices));
    // Both are at most kMostDevices, so the product can't overflow.
    world_size *= degree;
    if (world_size > kMostDevices) {
      return absl::InvalidArgumentError(
          absl::StrCat("parallel asks for more than ", kMostDevices,
                       " devices (the product of its axes)"));
    }
  }
  if (parallel.has_zero_stage()) {
    RETURN_IF_ERROR(
        CheckRange("parallel.zero_stage", parallel.zero_stage(), 1, 3));
  }
  if (parallel.has_virtual_stages()) {
    RETURN_IF_ERROR(CheckRange("parallel.virtual_stages",
                               parallel.virtual_stages(), 1, kMostLayers));
  }
  if (parallel.has_micro_batch()) {
    RETURN_IF_ERROR(CheckRange("parallel.micro_batch", parallel.micro_batch(),
                               1, kMostGlobalBatch));
  }
  const int64_t replicas = axes[0].degree * axes[1].degree;
  if (replicas > spec.train().global_batch()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parallel asks for ", replicas, " data shares (dp x fsdp), but ",
        "train.global_batch has only ", spec.train().global_batch(),
        " sequences"));
  }
  return absl::OkStatus();
}

absl::Status CheckResources(const v1::ResourceSpec& resources) {
  if (resources.has_devices()) {
    const v1::DeviceRange& devices = resources.devices();
    RETURN_IF_ERROR(
        CheckRange("resources.devices.min", devices.min(), 1, kMostDevices));
    RETURN_IF_ERROR(CheckRange("resources.devices.max", devices.max(),
                               devices.min(), kMostDevices));
  }
  if (resources.has_memory_per_device()) {
    // 2^60 bytes keep sums within 64 bits.
    constexpr uint64_t kMost = uint64_t{1} << 60;
    const uint64_t bytes = resources.memory_per_device().bytes();
    if (bytes == 0 || bytes > kMost) {
      return absl::InvalidArgumentError(
          absl::StrCat("resources.memory_per_device is ", bytes,
                       " bytes, want 1 to ", kMost));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRestart(const v1::RestartSpec& restart) {
  if (restart.has_max_attempts()) {
    RETURN_IF_ERROR(CheckRange("restart.max_attempts", restart.max_attempts(),
                               1, kMostAttempts));
  }
  if (restart.has_hang_timeout()) {
    const auto& timeout = restart.hang_timeout();
    const bool positive = timeout.seconds() > 0 ||
                          (timeout.seconds() == 0 && timeout.nanos() > 0);
    if (!positive || timeout.seconds() > kMostHangSeconds ||
        timeout.nanos() < 0 || timeout.nanos() > 999'999'999) {
      return absl::InvalidArgumentError(absl::StrCat(
          "restart.hang_timeout is ", timeout.seconds(), ".", timeout.nanos(),
          " s, want more than 0 and at most ", kMostHangSeconds));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPlacement(const v1::JobSpec& spec) {
  RETURN_IF_ERROR(CheckResources(spec.resources()));
  if (spec.has_parallel()) RETURN_IF_ERROR(CheckParallel(spec));
  if (spec.checkpoint().has_every_steps()) {
    RETURN_IF_ERROR(CheckRange("checkpoint.every_steps",
                               spec.checkpoint().every_steps(), 1, kMostSteps));
  }
  if (spec.checkpoint().has_keep()) {
    RETURN_IF_ERROR(
        CheckRange("checkpoint.keep", spec.checkpoint().keep(), 1, kMostSteps));
  }
  return CheckRestart(spec.restart());
}

absl::Status CheckWorldSize(const v1::JobSpec& spec) {
  if (!spec.resources().has_devices()) return absl::OkStatus();
  int64_t world_size = 1;
  for (const Axis& axis : AxesOf(spec.parallel())) world_size *= axis.degree;
  const int64_t devices = spec.resources().devices().max();
  if (world_size <= devices) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "parallel asks for ", world_size,
      " devices (the product of its axes), but resources.devices (of `run`: "
      "--local) is ",
      devices));
}

absl::Status CheckAction(const v1::JobSpec& spec) {
  const v1::Action& action = spec.action();
  if (action.source_job().empty()) {
    return absl::InvalidArgumentError("action.source_job is missing");
  }
  switch (action.kind_case()) {
    case v1::Action::kGenerate: {
      const v1::GenerateAction& generate = action.generate();
      if (spec.has_model() && spec.task() == v1::TASK_CLASSIFICATION) {
        return absl::InvalidArgumentError(
            "action.generate needs a language model, but the job's task is "
            "classification");
      }
      if (generate.has_max_tokens()) {
        RETURN_IF_ERROR(CheckRange("action.generate.max_tokens",
                                   generate.max_tokens(), 1, kMostPositions));
      }
      if (generate.has_temperature()) {
        RETURN_IF_ERROR(CheckNotNegative("action.generate.temperature",
                                         generate.temperature()));
      }
      if (generate.has_top_k()) {
        RETURN_IF_ERROR(
            CheckRange("action.generate.top_k", generate.top_k(), 0, kMostIds));
      }
      return absl::OkStatus();
    }
    case v1::Action::kEvaluate:
      if (!action.evaluate().has_data()) return absl::OkStatus();
      if (action.evaluate().data().has_fraction()) {
        return absl::InvalidArgumentError(
            "action.evaluate.data.fraction is a key of data.validation");
      }
      return CheckSource("action.evaluate.data", action.evaluate().data(),
                         spec.task());
    case v1::Action::kExport:
      if (action.export_().to().empty()) {
        return absl::InvalidArgumentError("action.export.to is missing");
      }
      return absl::OkStatus();
    case v1::Action::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "action has none of generate, evaluate and export");
}

}  // namespace lockstep::spec_internal
