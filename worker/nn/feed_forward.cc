#include "worker/nn/feed_forward.h"

#include <utility>

#include "common/status_macros.h"
#include "kernels/ops/elementwise.h"

namespace lockstep {

FeedForward::FeedForward(const ModelPart& part, const ParameterStore& store,
                         const std::string& prefix)
    : kind_(part.local.family == v1::MODEL_FAMILY_GPT2 ? Kind::kGelu
                                                       : Kind::kSwiglu),
      in_(kind_ == Kind::kGelu
              ? store.Get(prefix + "up.weight")
              : store.Stacked({prefix + "gate.weight", prefix + "up.weight"}),
          kind_ == Kind::kGelu ? store.Get(prefix + "up.bias") : Parameter()),
      down_(store.Get(prefix + "down.weight"),
            kind_ == Kind::kGelu ? store.Get(prefix + "down.bias")
                                 : Parameter()) {}

absl::StatusOr<OwnedTensor> FeedForward::Forward(
    const PassContext& context, const Tensor& x,
    FeedForwardActivations& saved) const {
  RETURN_IF_ERROR(Restore(context, x, saved));
  ASSIGN_OR_RETURN(OwnedTensor y, context.Activation(saved.activated->rows(),
                                                     down_.out_width()));
  RETURN_IF_ERROR(down_.ForwardPart(context, saved.activated, y));
  ASSIGN_OR_RETURN(PendingRows sum,
                   context.regions.BeginSum(context, std::move(y)));
  return sum.Finish();
}

absl::Status FeedForward::Restore(const PassContext& context, const Tensor& x,
                                  FeedForwardActivations& saved) const {
  {
    OwnedTensor storage;
    ASSIGN_OR_RETURN(const Tensor whole,
                     context.regions.Whole(context, x, storage));
    ASSIGN_OR_RETURN(saved.hidden,
                     context.Activation(whole.rows(), in_.out_width()));
    RETURN_IF_ERROR(in_.Forward(context, whole, saved.hidden));
  }
  ASSIGN_OR_RETURN(saved.activated,
                   context.Activation(saved.hidden->rows(), down_.in_width()));
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

absl::StatusOr<OwnedTensor> FeedForward::Backward(
    const PassContext& context, const Tensor& x, FeedForwardActivations& saved,
    const Tensor& dy, FeedForwardGradients* later) const {
  // Once the activated values are done with, their gradient takes their place.
  Tensor dactivated = saved.activated;
  {
    OwnedTensor storage;
    ASSIGN_OR_RETURN(const Tensor whole,
                     context.regions.Whole(context, dy, storage));
    RETURN_IF_ERROR(down_.BackwardBias(context, whole));
    if (later == nullptr) {
      RETURN_IF_ERROR(down_.BackwardMatrix(context, saved.activated, whole));
    } else {
      ASSIGN_OR_RETURN(later->dactivated,
                       context.Activation(whole.rows(), down_.in_width()));
      dactivated = later->dactivated;
    }
    RETURN_IF_ERROR(down_.BackwardInput(context, whole, dactivated));
  }
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
  ASSIGN_OR_RETURN(OwnedTensor dx,
                   context.Activation(dhidden.rows(), in_.in_width()));
  RETURN_IF_ERROR(in_.BackwardInput(context, dhidden, dx));
  OwnedTensor storage;
  Tensor whole;
  if (later == nullptr) {
    // Before the sum, which then goes on beside the matrix's gradient.
    ASSIGN_OR_RETURN(whole, context.regions.Whole(context, x, storage));
  }
  ASSIGN_OR_RETURN(PendingRows sum,
                   context.regions.BeginSum(context, std::move(dx)));
  RETURN_IF_ERROR(in_.BackwardBias(context, dhidden));
  if (later == nullptr) {
    RETURN_IF_ERROR(in_.BackwardMatrix(context, whole, dhidden));
    saved = FeedForwardActivations();
  } else {
    later->dhidden = dhidden;
    // One of the two is done with.
    (kind_ == Kind::kGelu ? saved.hidden : later->dactivated).Reset();
  }
  return sum.Finish();
}

absl::Status FeedForward::BackwardMatrices(
    const PassContext& context, const Tensor& x,
    const FeedForwardActivations& saved,
    const FeedForwardGradients& later) const {
  {
    OwnedTensor storage;
    ASSIGN_OR_RETURN(const Tensor whole,
                     context.regions.Whole(context, later.dy, storage));
    RETURN_IF_ERROR(down_.BackwardMatrix(context, saved.activated, whole));
  }
  OwnedTensor storage;
  ASSIGN_OR_RETURN(const Tensor whole,
                   context.regions.Whole(context, x, storage));
  return in_.BackwardMatrix(context, whole, later.dhidden);
}

}  // namespace lockstep
