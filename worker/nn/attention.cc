#include "worker/nn/attention.h"

#include <cmath>
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
    : heads_(part.local.heads),
      kv_heads_(part.local.kv_heads),
      head_width_(part.local.head_width),
      first_head_(part.first_head),
      rope_theta_(part.local.family == v1::MODEL_FAMILY_LLAMA
                      ? std::optional<double>(part.local.rope_theta)
                      : std::nullopt),
      site_(SiteOf(unit, DropoutSite::kAttentionWeights)),
      qkv_(store.Stacked(
               {prefix + "q.weight", prefix + "k.weight", prefix + "v.weight"}),
           BiasOrNone(store, {prefix + "q.bias", prefix + "k.bias",
                              prefix + "v.bias"})),
      output_(store.Get(prefix + "output.weight"),
              BiasOrNone(store, {prefix + "output.bias"})) {}

AttentionShape Attention::ShapeOf(const PassContext& context) const {
  AttentionShape shape;
  shape.heads = heads_;
  shape.kv_heads = kv_heads_;
  shape.head_width = head_width_;
  shape.softmax_scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_width_)));
  shape.mask = AttentionMask::kCausal;
  shape.query_bounds = context.batch.segment_bounds;
  shape.key_bounds = context.batch.segment_bounds;
  shape.max_query_rows = context.batch.max_segment_rows;
  shape.max_key_rows = context.batch.max_segment_rows;
  shape.dropout = context.DropoutAt(site_);
  shape.first_head = first_head_;
  return shape;
}

Tensor Attention::Queries(const Tensor& qkv) const {
  return qkv.Columns(0, heads_ * head_width_);
}
Tensor Attention::Keys(const Tensor& qkv) const {
  return qkv.Columns(heads_ * head_width_, kv_heads_ * head_width_);
}
Tensor Attention::Values(const Tensor& qkv) const {
  return qkv.Columns((heads_ + kv_heads_) * head_width_,
                     kv_heads_ * head_width_);
}

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
    RETURN_IF_ERROR(ops::Rotary(
        context.stream,
        saved.qkv->Columns(0, (heads_ + kv_heads_) * head_width_), head_width_,
        *rope_theta_, context.batch.positions, ops::RotaryDirection::kForward));
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
  const int64_t rows = saved.qkv->rows();
  ASSIGN_OR_RETURN(saved.out, context.Activation(rows, heads_ * head_width_));
  ASSIGN_OR_RETURN(
      saved.lse,
      AllocateTensor(context.stream, DType::kFloat32, {heads_, rows},
                     MemoryCategory::kActivation, RowPadding::kDense));
  return ops::AttentionForward(context.stream, ShapeOf(context),
                               Queries(saved.qkv), Keys(saved.qkv),
                               Values(saved.qkv), saved.out, saved.lse);
}

absl::StatusOr<OwnedTensor> Attention::BackwardOutput(
    const PassContext& context, const AttentionActivations& saved,
    const Tensor& dy, const AttentionGradients* later) const {
  OwnedTensor storage;
  ASSIGN_OR_RETURN(const Tensor whole,
                   context.regions.Whole(context, dy, storage));
  ASSIGN_OR_RETURN(OwnedTensor dout,
                   context.Activation(whole.rows(), heads_ * head_width_));
  RETURN_IF_ERROR(output_.BackwardBias(context, whole));
  if (later == nullptr) {
    RETURN_IF_ERROR(output_.BackwardMatrix(context, saved.out, whole));
  }
  RETURN_IF_ERROR(output_.BackwardInput(context, whole, dout));
  storage.Reset();
  ASSIGN_OR_RETURN(OwnedTensor dqkv,
                   context.Activation(dout->rows(), qkv_.out_width()));
  RETURN_IF_ERROR(ops::AttentionBackward(
      context.stream, ShapeOf(context), dout, Queries(saved.qkv),
      Keys(saved.qkv), Values(saved.qkv), saved.out, saved.lse, Queries(dqkv),
      Keys(dqkv), Values(dqkv)));
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
    RETURN_IF_ERROR(ops::Rotary(
        context.stream, dqkv->Columns(0, (heads_ + kv_heads_) * head_width_),
        head_width_, *rope_theta_, context.batch.positions,
        ops::RotaryDirection::kBackward));
  }
  ASSIGN_OR_RETURN(OwnedTensor dx,
                   context.Activation(dqkv->rows(), qkv_.in_width()));
  RETURN_IF_ERROR(qkv_.BackwardInput(context, dqkv, dx));
  ASSIGN_OR_RETURN(PendingRows sum,
                   context.regions.BeginSum(context, std::move(dx)));
  RETURN_IF_ERROR(qkv_.BackwardBias(context, dqkv));
  if (later == nullptr) {
    OwnedTensor storage;
    ASSIGN_OR_RETURN(const Tensor whole,
                     context.regions.Whole(context, x, storage));
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
