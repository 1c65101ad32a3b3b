#include "worker/nn/feed_forward.h"

#include "common/status_macros.h"
#include "kernels/ops/elementwise.h"

namespace lockstep {

FeedForward::FeedForward(const ModelSpec& spec, const ParameterStore& store,
                         const std::string& prefix)
    : kind_(spec.family == v1::MODEL_FAMILY_GPT2 ? Kind::kGelu : Kind::kSwiglu),
      in_(kind_ == Kind::kGelu
              ? store.Get(prefix + "up.weight")
              : store.Stacked({prefix + "gate.weight", prefix + "up.weight"}),
          kind_ == Kind::kGelu ? store.Get(prefix + "up.bias") : Parameter()),
      down_(store.Get(prefix + "down.weight"),
            kind_ == Kind::kGelu ? store.Get(prefix + "down.bias")
                                 : Parameter()) {}

absl::Status FeedForward::Forward(const PassContext& context, const Tensor& x,
                                  FeedForwardActivations& saved,
                                  const Tensor& y) const {
  RETURN_IF_ERROR(Restore(context, x, saved));
  return down_.Forward(context, saved.activated, y);
}

absl::Status FeedForward::Restore(const PassContext& context, const Tensor& x,
                                  FeedForwardActivations& saved) const {
  ASSIGN_OR_RETURN(saved.hidden, context.Activation(x.rows(), in_.out_width()));
  RETURN_IF_ERROR(in_.Forward(context, x, saved.hidden));
  ASSIGN_OR_RETURN(saved.activated,
                   context.Activation(x.rows(), down_.in_width()));
  switch (kind_) {
    case Kind::kGelu:
      RETURN_IF_ERROR(
          ops::GeluForward(context.stream, saved.hidden, saved.activated));
      break;
    case Kind::kSwiglu:
      RETURN_IF_ERROR(
          ops::SwigluForward(context.stream, saved.hidden, saved.activated));
      break;
  }
  return absl::OkStatus();
}

absl::Status FeedForward::Backward(const PassContext& context, const Tensor& x,
                                   FeedForwardActivations& saved,
                                   const Tensor& dy, const Tensor& dx) const {
  RETURN_IF_ERROR(down_.BackwardWeights(context, saved.activated, dy));
  // The activated values are done with: their gradient takes their place.
  const Tensor dactivated = saved.activated;
  RETURN_IF_ERROR(down_.BackwardInput(context, dy, dactivated));
  Tensor dhidden;
  switch (kind_) {
    case Kind::kGelu:
      RETURN_IF_ERROR(ops::GeluBackward(context.stream, dactivated,
                                        saved.hidden, dactivated));
      dhidden = dactivated;
      break;
    case Kind::kSwiglu:
      RETURN_IF_ERROR(ops::SwigluBackward(context.stream, dactivated,
                                          saved.hidden, saved.hidden));
      dhidden = saved.hidden;
      break;
  }
  RETURN_IF_ERROR(in_.BackwardWeights(context, x, dhidden));
  RETURN_IF_ERROR(in_.BackwardInput(context, dhidden, dx));
  saved = FeedForwardActivations();
  return absl::OkStatus();
}

}  // namespace lockstep
