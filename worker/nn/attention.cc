#include "worker/nn/attention.h"

#include <utility>

#include "common/status_macros.h"
#include "kernels/ops/elementwise.h"

namespace lockstep {
namespace {

Parameter BiasOrNone(const ParameterStore& store,
                     const std::vector<std::string>& names) {
  return store.Contains(names.front()) ? store.Stacked(names) : Parameter();
}

}  // namespace

Attention::Attention(const ModelPart& part, const ParameterStore& store,
                     const std::string& prefix, int unit)
    : heads_{part.local.heads, part.local.kv_heads, part.local.head_width,
             part.first_head, SiteOf(unit, DropoutSite::kAttentionWeights)},
      rope_theta_(part.local.family == v1::MODEL_FAMILY_LLAMA
                      ? std::optional<double>(part.local.rope_theta)
                      : std::nullopt),
      qkv_(store.Stacked(
               {prefix + "q.weight", prefix + "k.weight", prefix + "v.weight"}),
           BiasOrNone(store, {prefix + "q.bias", prefix + "k.bias",
                              prefix + "v.bias"})),
      output_(store.Get(prefix + "output.weight"),
              BiasOrNone(store, {prefix + "output.bias"})) {}

absl::StatusOr<OwnedTensor> Attention::Forward(
    const PassContext& context, const Tensor& x,
    AttentionActivations& saved) const {
  {
    OwnedTensor storage;
    ASSIGN_OR_RETURN(const Tensor whole,
                     context.regions.Whole(context, x, storage));
    ASSIGN_OR_RETURN(saved.qkv,
                     context.Activation(whole.rows(), qkv_.out_width()));
    RETURN_IF_ERROR(qkv_.Forward(context, whole, saved.qkv));
  }
  if (rope_theta_.has_value()) {
    // Queries and keys are adjacent, and heads are turned alike.
    RETURN_IF_ERROR(
        ops::Rotary(context.stream, saved.qkv->Columns(0, rotated_width()),
                    heads_.head_width, *rope_theta_, context.batch.positions,
                    ops::RotaryDirection::kForward));
  }
  RETURN_IF_ERROR(Restore(context, saved));
  ASSIGN_OR_RETURN(OwnedTensor y,
                   context.Activation(saved.out->rows(), output_.out_width()));
  RETURN_IF_ERROR(output_.ForwardPart(context, saved.out, y));
  ASSIGN_OR_RETURN(PendingRows sum,
                   context.regions.BeginSum(context, std::move(y)));
  return sum.Finish();
}

absl::Status Attention::Restore(const PassContext& context,
                                AttentionActivations& saved) const {
  ASSIGN_OR_RETURN(saved.out,
                   context.Activation(saved.qkv->rows(), query_width()));
  ASSIGN_OR_RETURN(saved.lse, context.attention.Forward(context, heads_,
                                                        saved.qkv, saved.out));
  return absl::OkStatus();
}

absl::StatusOr<OwnedTensor> Attention::BackwardOutput(
    const PassContext& context, const AttentionActivations& saved,
    const Tensor& dy, const AttentionGradients* later) const {
  OwnedTensor storage;
  ASSIGN_OR_RETURN(const Tensor whole,
                   context.regions.Whole(context, dy, storage));
  ASSIGN_OR_RETURN(OwnedTensor dout,
                   context.Activation(whole.rows(), query_width()));
  RETURN_IF_ERROR(output_.BackwardBias(context, whole));
  if (later == nullptr) {
    RETURN_IF_ERROR(output_.BackwardMatrix(context, saved.out, whole));
  }
  RETURN_IF_ERROR(output_.BackwardInput(context, whole, dout));
  storage.Reset();
  ASSIGN_OR_RETURN(OwnedTensor dqkv,
                   context.Activation(dout->rows(), qkv_.out_width()));
  RETURN_IF_ERROR(context.attention.Backward(context, heads_, dout, saved.qkv,
                                             saved.out, saved.lse, dqkv));
  return dqkv;
}

absl::StatusOr<OwnedTensor> Attention::Backward(
    const PassContext& context, const Tensor& x, AttentionActivations& saved,
    const Tensor& dy, AttentionGradients* later) const {
  ASSIGN_OR_RETURN(OwnedTensor dqkv, BackwardOutput(context, saved, dy, later));
  if (later == nullptr) {
    saved = AttentionActivations();
  } else {
    // The output product's matrix takes no more than its input.
    saved.qkv.Reset();
    saved.lse.Reset();
  }
  if (rope_theta_.has_value()) {
    RETURN_IF_ERROR(
        ops::Rotary(context.stream, dqkv->Columns(0, rotated_width()),
                    heads_.head_width, *rope_theta_, context.batch.positions,
                    ops::RotaryDirection::kBackward));
  }
  ASSIGN_OR_RETURN(OwnedTensor dx,
                   context.Activation(dqkv->rows(), qkv_.in_width()));
  RETURN_IF_ERROR(qkv_.BackwardInput(context, dqkv, dx));
  OwnedTensor storage;
  Tensor whole;
  if (later == nullptr) {
    // Before the sum, which then goes on beside the matrix's gradient.
    ASSIGN_OR_RETURN(whole, context.regions.Whole(context, x, storage));
  }
  ASSIGN_OR_RETURN(PendingRows sum,
                   context.regions.BeginSum(context, std::move(dx)));
  RETURN_IF_ERROR(qkv_.BackwardBias(context, dqkv));
  if (later == nullptr) {
    RETURN_IF_ERROR(qkv_.BackwardMatrix(context, whole, dqkv));
  } else {
    later->dqkv = std::move(dqkv);
  }
  return sum.Finish();
}

absl::Status Attention::BackwardMatrices(
    const PassContext& context, const Tensor& x,
    const AttentionActivations& saved, const AttentionGradients& later) const {
  OwnedTensor storage;
  ASSIGN_OR_RETURN(const Tensor whole,
                   context.regions.Whole(context, later.dy, storage));
  RETURN_IF_ERROR(output_.BackwardMatrix(context, saved.out, whole));
  OwnedTensor input_storage;
  ASSIGN_OR_RETURN(const Tensor input,
                   context.regions.Whole(context, x, input_storage));
  return qkv_.BackwardMatrix(context, input, later.dqkv);
}

}  // namespace lockstep
