// The model section of a job file.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/spec/spec_checks.h"
#include "common/status_macros.h"

namespace lockstep::spec_internal {
namespace {

absl::Status CheckHeads(const v1::ModelSpec& model) {
  RETURN_IF_ERROR(CheckRequired("model.heads", model.heads(), kMostWidth));
  if (model.has_head_width()) {
    RETURN_IF_ERROR(
        CheckRange("model.head_width", model.head_width(), 1, kMostWidth));
    // Both factors are at most kMostWidth, so the product can't overflow.
    if (model.heads() * model.head_width() > kMostWidth) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model.heads x model.head_width is ",
          model.heads() * model.head_width(), ", want at most ", kMostWidth));
    }
  } else if (model.width() % model.heads() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.heads is ", model.heads(),
                     ", which does not divide ", "model.width ", model.width(),
                     "; change one or give model.head_width"));
  }
  if (model.has_kv_heads()) {
    RETURN_IF_ERROR(
        CheckRange("model.kv_heads", model.kv_heads(), 1, model.heads()));
    if (model.heads() % model.kv_heads() != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("model.kv_heads is ", model.kv_heads(),
                       ", which does not divide model.heads ", model.heads()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFamily(const v1::JobSpec& spec) {
  const v1::ModelSpec& model = spec.model();
  switch (model.family()) {
    case v1::MODEL_FAMILY_GPT2:
      if (model.has_kv_heads() && model.kv_heads() != model.heads()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "model.kv_heads is ", model.kv_heads(), ", but gpt2 has as many ",
            "key and value heads as heads (", model.heads(), ")"));
      }
      if (model.has_maximum_positions()) {
        RETURN_IF_ERROR(CheckRange("model.maximum_positions",
                                   model.maximum_positions(), 1,
                                   kMostPositions));
        if (model.maximum_positions() < spec.train().sequence_length()) {
          return absl::InvalidArgumentError(absl::StrCat(
              "model.maximum_positions is ", model.maximum_positions(),
              ", want at least train.sequence_length ",
              spec.train().sequence_length()));
        }
      }
      return CheckNotOf(model.has_rope_theta(), "model.rope_theta", "llama",
                        "gpt2");
    case v1::MODEL_FAMILY_LLAMA: {
      if (model.has_rope_theta()) {
        RETURN_IF_ERROR(CheckPositive("model.rope_theta", model.rope_theta()));
      }
      const int64_t head_width = model.has_head_width()
                                     ? model.head_width()
                                     : model.width() / model.heads();
      if (head_width % 2 != 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            model.has_head_width() ? "model.head_width" : "model.width / heads",
            " is ", head_width, ", want an even number for rotary positions"));
      }
      return CheckNotOf(model.has_maximum_positions(),
                        "model.maximum_positions", "gpt2", "llama");
    }
    case v1::MODEL_FAMILY_UNSPECIFIED:
    case v1::ModelFamily_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::ModelFamily_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return absl::InvalidArgumentError(
      "model.family is missing, want gpt2 or llama");
}

}  // namespace

absl::Status CheckModel(const v1::JobSpec& spec) {
  const v1::ModelSpec& model = spec.model();
  if (!spec.has_model()) {
    return absl::InvalidArgumentError("model is missing");
  }
  if (!model.from().empty()) return absl::OkStatus();  // Refused as not built.
  if (model.family() == v1::MODEL_FAMILY_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        "model.family is missing, want gpt2 or llama");
  }
  RETURN_IF_ERROR(CheckRequired("model.layers", model.layers(), kMostLayers));
  RETURN_IF_ERROR(CheckRequired("model.width", model.width(), kMostWidth));
  RETURN_IF_ERROR(CheckHeads(model));
  if (model.has_feed_forward_width()) {
    RETURN_IF_ERROR(CheckRange("model.feed_forward_width",
                               model.feed_forward_width(), 1,
                               kMostFeedForwardWidth));
  }
  if (model.has_vocabulary()) {
    RETURN_IF_ERROR(
        CheckRange("model.vocabulary", model.vocabulary(), 2, kMostIds));
  }
  RETURN_IF_ERROR(CheckBelowOne("model.dropout", model.dropout()));
  if (model.has_norm_epsilon()) {
    RETURN_IF_ERROR(CheckPositive("model.norm_epsilon", model.norm_epsilon()));
  }
  return CheckFamily(spec);
}

absl::Status CheckActivations(const v1::JobSpec& spec) {
  const v1::ModelSpec& model = spec.model();
  const double tokens = static_cast<double>(spec.train().global_batch()) *
                        static_cast<double>(spec.train().sequence_length());
  const double widest = static_cast<double>(
      std::max({model.width(), model.feed_forward_width(),
                model.heads() * std::max<int64_t>(model.head_width(), 1)}));
  const double elements =
      tokens * std::max(static_cast<double>(model.layers()) * widest,
                        static_cast<double>(model.vocabulary()));
  if (elements <= kMostActivations) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "train.global_batch x train.sequence_length x model size is ", elements,
      " activations a step, want at most ", kMostActivations));
}

}  // namespace lockstep::spec_internal
