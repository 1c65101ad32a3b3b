#include "worker/nn/attention.h"

#include <cmath>

#include "common/status_macros.h"
#include "kernels/ops/elementwise.h"

namespace lockstep {
namespace {

Parameter BiasOrNone(const ParameterStore& store,
                     const std::vector<std::string>& names) {
  return store.Contains(names.front()) ? store.Stacked(names) : Parameter();
}

}  // namespace

Attention::Attention(const ModelSpec& spec, const ParameterStore& store,
                     const std::string& prefix, int unit)
    : heads_(spec.heads),
      kv_heads_(spec.kv_heads),
      head_width_(spec.head_width),
      rope_theta_(spec.family == v1::MODEL_FAMILY_LLAMA
                      ? std::optional<double>(spec.rope_theta)
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

absl::Status Attention::Forward(const PassContext& context, const Tensor& x,
                                AttentionActivations& saved,
                                const Tensor& y) const {
  const int64_t rows = x.rows();
  ASSIGN_OR_RETURN(saved.qkv, context.Activation(rows, qkv_.out_width()));
  RETURN_IF_ERROR(qkv_.Forward(context, x, saved.qkv));
  if (rope_theta_.has_value()) {
    // Queries and keys are adjacent, and heads are turned alike.
    RETURN_IF_ERROR(ops::Rotary(
        context.stream,
        saved.qkv->Columns(0, (heads_ + kv_heads_) * head_width_), head_width_,
        *rope_theta_, context.batch.positions, ops::RotaryDirection::kForward));
  }
  RETURN_IF_ERROR(Restore(context, saved));
  return output_.Forward(context, saved.out, y);
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

absl::Status Attention::Backward(const PassContext& context, const Tensor& x,
                                 AttentionActivations& saved, const Tensor& dy,
                                 const Tensor& dx) const {
  const int64_t rows = x.rows();
  OwnedTensor dqkv;
  {
    ASSIGN_OR_RETURN(OwnedTensor dout,
                     context.Activation(rows, heads_ * head_width_));
    RETURN_IF_ERROR(output_.BackwardWeights(context, saved.out, dy));
    RETURN_IF_ERROR(output_.BackwardInput(context, dy, dout));
    ASSIGN_OR_RETURN(dqkv, context.Activation(rows, qkv_.out_width()));
    RETURN_IF_ERROR(ops::AttentionBackward(
        context.stream, ShapeOf(context), dout, Queries(saved.qkv),
        Keys(saved.qkv), Values(saved.qkv), saved.out, saved.lse, Queries(dqkv),
        Keys(dqkv), Values(dqkv)));
  }
  saved = AttentionActivations();
  if (rope_theta_.has_value()) {
    RETURN_IF_ERROR(ops::Rotary(
        context.stream, dqkv->Columns(0, (heads_ + kv_heads_) * head_width_),
        head_width_, *rope_theta_, context.batch.positions,
        ops::RotaryDirection::kBackward));
  }
  RETURN_IF_ERROR(qkv_.BackwardWeights(context, x, dqkv));
  return qkv_.BackwardInput(context, dqkv, dx);
}

}  // namespace lockstep
