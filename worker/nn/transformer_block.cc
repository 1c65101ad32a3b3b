#include "worker/nn/transformer_block.h"

#include <string>
#include <utility>

#include "common/status_macros.h"
#include "kernels/ops/elementwise.h"

namespace lockstep {
namespace {

std::string Prefix(int unit) {
  return "blocks." + std::to_string(unit - 1) + ".";
}

}  // namespace

ResidualNorm MakeNorm(const ModelSpec& spec, const ParameterStore& store,
                      const std::string& prefix) {
  const bool layer_norm = spec.family == v1::MODEL_FAMILY_GPT2;
  return ResidualNorm(layer_norm ? NormKind::kLayerNorm : NormKind::kRmsNorm,
                      spec.norm_epsilon, store.Get(prefix + ".weight"),
                      layer_norm ? store.Get(prefix + ".bias") : Parameter());
}

TransformerBlock::TransformerBlock(const ModelPart& part,
                                   const ParameterStore& store, int unit)
    : unit_(unit),
      attention_norm_(
          MakeNorm(part.local, store, Prefix(unit) + "attention_norm")),
      attention_(part, store, Prefix(unit) + "attention.", unit),
      feed_forward_norm_(
          MakeNorm(part.local, store, Prefix(unit) + "feed_forward_norm")),
      feed_forward_(part, store, Prefix(unit) + "feed_forward.") {}

absl::StatusOr<Residual> TransformerBlock::Forward(
    const PassContext& context, Residual input, BlockActivations& saved) const {
  RETURN_IF_ERROR(
      attention_norm_.Forward(context, std::move(input), saved.attention_norm));
  RETURN_IF_ERROR(ForwardAttention(context, saved));
  Residual output;
  output.sum = saved.feed_forward_norm.input;
  output.site = SiteOf(unit_, DropoutSite::kFeedForwardOutput);
  ASSIGN_OR_RETURN(output.branch, feed_forward_.Forward(
                                      context, saved.feed_forward_norm.normed,
                                      saved.feed_forward));
  return output;
}

absl::Status TransformerBlock::ForwardAttention(const PassContext& context,
                                                BlockActivations& saved) const {
  Residual middle;
  middle.sum = saved.attention_norm.input;
  middle.site = SiteOf(unit_, DropoutSite::kAttentionOutput);
  ASSIGN_OR_RETURN(middle.branch,
                   attention_.Forward(context, saved.attention_norm.normed,
                                      saved.attention));
  return feed_forward_norm_.Forward(context, std::move(middle),
                                    saved.feed_forward_norm);
}

void TransformerBlock::Discard(const PassContext& context,
                               BlockActivations& saved) const {
  if (context.checkpoint == v1::ACTIVATION_CHECKPOINT_SELECTIVE) {
    saved.attention.out.Reset();
    saved.attention.lse.Reset();
  } else if (context.checkpoint == v1::ACTIVATION_CHECKPOINT_FULL) {
    NormActivations kept;
    kept.sum = std::move(saved.attention_norm.sum);
    kept.input = saved.attention_norm.input;
    saved = BlockActivations();
    saved.attention_norm = std::move(kept);
  }
}

absl::Status TransformerBlock::Restore(const PassContext& context,
                                       BlockActivations& saved) const {
  if (context.checkpoint == v1::ACTIVATION_CHECKPOINT_SELECTIVE &&
      saved.attention.out.empty()) {
    return attention_.Restore(context, saved.attention);
  }
  if (context.checkpoint == v1::ACTIVATION_CHECKPOINT_FULL &&
      saved.attention_norm.normed.empty()) {
    RETURN_IF_ERROR(attention_norm_.Restore(context, saved.attention_norm));
    RETURN_IF_ERROR(ForwardAttention(context, saved));
    return feed_forward_.Restore(context, saved.feed_forward_norm.normed,
                                 saved.feed_forward);
  }
  return absl::OkStatus();
}

absl::Status TransformerBlock::BackwardFeedForward(const PassContext& context,
                                                   BlockActivations& saved,
                                                   const Tensor& dsum,
                                                   Matrices matrices) const {
  FeedForwardGradients* const later =
      matrices == Matrices::kLater ? &saved.feed_forward_later : nullptr;
  OwnedTensor dnormed;
  {
    OwnedTensor storage;
    ASSIGN_OR_RETURN(
        const Tensor dbranch,
        BranchGradient(context, SiteOf(unit_, DropoutSite::kFeedForwardOutput),
                       dsum, later == nullptr ? storage : later->dy));
    if (later != nullptr && later->dy.empty()) {
      // `dsum` changes before the matrices' turn comes.
      ASSIGN_OR_RETURN(later->dy, context.Activation(dsum.rows(), dsum.cols()));
      RETURN_IF_ERROR(ops::Convert(context.stream, dsum, later->dy));
    }
    ASSIGN_OR_RETURN(
        dnormed, feed_forward_.Backward(context, saved.feed_forward_norm.normed,
                                        saved.feed_forward, dbranch, later));
  }
  return feed_forward_norm_.Backward(context, saved.feed_forward_norm, dnormed,
                                     dsum);
}

absl::Status TransformerBlock::BackwardAttention(const PassContext& context,
                                                 BlockActivations& saved,
                                                 const Tensor& dsum,
                                                 Matrices matrices) const {
  AttentionGradients* const later =
      matrices == Matrices::kLater ? &saved.attention_later : nullptr;
  OwnedTensor dnormed;
  {
    OwnedTensor storage;
    ASSIGN_OR_RETURN(
        const Tensor dbranch,
        BranchGradient(context, SiteOf(unit_, DropoutSite::kAttentionOutput),
                       dsum, later == nullptr ? storage : later->dy));
    if (later != nullptr && later->dy.empty()) {
      ASSIGN_OR_RETURN(later->dy, context.Activation(dsum.rows(), dsum.cols()));
      RETURN_IF_ERROR(ops::Convert(context.stream, dsum, later->dy));
    }
    ASSIGN_OR_RETURN(dnormed,
                     attention_.Backward(context, saved.attention_norm.normed,
                                         saved.attention, dbranch, later));
  }
  return attention_norm_.Backward(context, saved.attention_norm, dnormed, dsum);
}

absl::Status TransformerBlock::Backward(const PassContext& context,
                                        BlockActivations& saved,
                                        const Tensor& dsum) const {
  RETURN_IF_ERROR(BackwardFeedForward(context, saved, dsum, Matrices::kNow));
  saved.feed_forward_norm = NormActivations();
  RETURN_IF_ERROR(BackwardAttention(context, saved, dsum, Matrices::kNow));
  saved = BlockActivations();
  return absl::OkStatus();
}

absl::Status TransformerBlock::BackwardInput(const PassContext& context,
                                             BlockActivations& saved,
                                             const Tensor& dsum) const {
  RETURN_IF_ERROR(BackwardFeedForward(context, saved, dsum, Matrices::kLater));
  saved.feed_forward_norm.sum.Reset();
  RETURN_IF_ERROR(BackwardAttention(context, saved, dsum, Matrices::kLater));
  saved.attention_norm.sum.Reset();
  return absl::OkStatus();
}

absl::Status TransformerBlock::BackwardMatrices(const PassContext& context,
                                                BlockActivations& saved) const {
  RETURN_IF_ERROR(feed_forward_.BackwardMatrices(
      context, saved.feed_forward_norm.normed, saved.feed_forward,
      saved.feed_forward_later));
  RETURN_IF_ERROR(
      attention_.BackwardMatrices(context, saved.attention_norm.normed,
                                  saved.attention, saved.attention_later));
  saved = BlockActivations();
  return absl::OkStatus();
}

}  // namespace lockstep
