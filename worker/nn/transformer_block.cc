#include "worker/nn/transformer_block.h"

#include <string>
#include <utility>

#include "common/status_macros.h"

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

TransformerBlock::TransformerBlock(const ModelSpec& spec,
                                   const ParameterStore& store, int unit)
    : unit_(unit),
      attention_norm_(MakeNorm(spec, store, Prefix(unit) + "attention_norm")),
      attention_(spec, store, Prefix(unit) + "attention.", unit),
      feed_forward_norm_(
          MakeNorm(spec, store, Prefix(unit) + "feed_forward_norm")),
      feed_forward_(spec, store, Prefix(unit) + "feed_forward.") {}

absl::StatusOr<Residual> TransformerBlock::Forward(
    const PassContext& context, Residual input, BlockActivations& saved) const {
  const int64_t rows = input.sum.rows(), cols = input.sum.cols();
  RETURN_IF_ERROR(
      attention_norm_.Forward(context, std::move(input), saved.attention_norm));
  Residual middle;
  middle.sum = saved.attention_norm.input;
  middle.site = SiteOf(unit_, DropoutSite::kAttentionOutput);
  ASSIGN_OR_RETURN(middle.branch, context.Activation(rows, cols));
  RETURN_IF_ERROR(attention_.Forward(context, saved.attention_norm.normed,
                                     saved.attention, middle.branch));

  RETURN_IF_ERROR(feed_forward_norm_.Forward(context, std::move(middle),
                                             saved.feed_forward_norm));
  Residual output;
  output.sum = saved.feed_forward_norm.input;
  output.site = SiteOf(unit_, DropoutSite::kFeedForwardOutput);
  ASSIGN_OR_RETURN(output.branch, context.Activation(rows, cols));
  RETURN_IF_ERROR(feed_forward_.Forward(context, saved.feed_forward_norm.normed,
                                        saved.feed_forward, output.branch));
  return output;
}

absl::Status TransformerBlock::Backward(const PassContext& context,
                                        BlockActivations& saved,
                                        const Tensor& dsum) const {
  ASSIGN_OR_RETURN(OwnedTensor dnormed,
                   context.Activation(dsum.rows(), dsum.cols()));
  {
    OwnedTensor storage;
    ASSIGN_OR_RETURN(
        const Tensor dbranch,
        BranchGradient(context, SiteOf(unit_, DropoutSite::kFeedForwardOutput),
                       dsum, storage));
    RETURN_IF_ERROR(
        feed_forward_.Backward(context, saved.feed_forward_norm.normed,
                               saved.feed_forward, dbranch, dnormed));
  }
  RETURN_IF_ERROR(feed_forward_norm_.Backward(context, saved.feed_forward_norm,
                                              dnormed, dsum));
  saved.feed_forward_norm = NormActivations();
  {
    OwnedTensor storage;
    ASSIGN_OR_RETURN(
        const Tensor dbranch,
        BranchGradient(context, SiteOf(unit_, DropoutSite::kAttentionOutput),
                       dsum, storage));
    RETURN_IF_ERROR(attention_.Backward(context, saved.attention_norm.normed,
                                        saved.attention, dbranch, dnormed));
  }
  RETURN_IF_ERROR(
      attention_norm_.Backward(context, saved.attention_norm, dnormed, dsum));
  saved = BlockActivations();
  return absl::OkStatus();
}

}  // namespace lockstep
