#include "worker/nn/transformer_model.h"

#include <utility>

#include "common/status_macros.h"
#include "worker/nn/classification_head.h"
#include "worker/nn/language_model_head.h"

namespace lockstep {

std::unique_ptr<Head> MakeHead(const ModelPart& part,
                               const ParameterStore& store) {
  if (part.local.task == v1::TASK_CLASSIFICATION) {
    return std::make_unique<ClassificationHead>(part, store);
  }
  return std::make_unique<LanguageModelHead>(part, store);
}

TransformerModel::TransformerModel(const ModelPart& part,
                                   const ParameterStore& store)
    : embedding_(part, store), head_(MakeHead(part, store)) {
  for (int64_t layer = 0; layer < part.local.layers; ++layer) {
    blocks_.push_back(std::make_unique<TransformerBlock>(
        part, store, static_cast<int>(layer) + 1));
  }
}

absl::Status TransformerModel::ForwardBackward(const PassContext& context,
                                               LossSums& sums,
                                               UnitObserver& observer) const {
  OwnedTensor embedded;
  RETURN_IF_ERROR(observer.BeforeUnit(0, Pass::kForward));
  ASSIGN_OR_RETURN(Residual residual, embedding_.Forward(context, embedded));
  RETURN_IF_ERROR(observer.AfterUnit(0, Pass::kForward));
  std::vector<BlockActivations> saved(blocks_.size());
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const int unit = static_cast<int>(i) + 1;
    RETURN_IF_ERROR(observer.BeforeUnit(unit, Pass::kForward));
    ASSIGN_OR_RETURN(
        residual, blocks_[i]->Forward(context, std::move(residual), saved[i]));
    RETURN_IF_ERROR(observer.AfterUnit(unit, Pass::kForward));
    // The last block's are needed at once.
    if (i > 0) blocks_[i - 1]->Discard(context, saved[i - 1]);
  }
  RETURN_IF_ERROR(observer.BeforeUnit(units() - 1, Pass::kBackward));
  ASSIGN_OR_RETURN(OwnedTensor dsum,
                   head_->ForwardBackward(context, std::move(residual), sums));
  RETURN_IF_ERROR(observer.AfterUnit(units() - 1, Pass::kBackward));
  for (size_t i = blocks_.size(); i-- > 0;) {
    const int unit = static_cast<int>(i) + 1;
    RETURN_IF_ERROR(observer.BeforeUnit(unit, Pass::kBackward));
    RETURN_IF_ERROR(blocks_[i]->Restore(context, saved[i]));
    RETURN_IF_ERROR(blocks_[i]->Backward(context, saved[i], dsum));
    RETURN_IF_ERROR(observer.AfterUnit(unit, Pass::kBackward));
  }
  RETURN_IF_ERROR(observer.BeforeUnit(0, Pass::kBackward));
  RETURN_IF_ERROR(embedding_.Backward(context, dsum));
  return observer.AfterUnit(0, Pass::kBackward);
}

absl::Status TransformerModel::ForwardOnly(
    const PassContext& context, UnitObserver& observer,
    absl::FunctionRef<absl::Status(Residual)> head) const {
  OwnedTensor embedded;
  RETURN_IF_ERROR(observer.BeforeUnit(0, Pass::kForward));
  ASSIGN_OR_RETURN(Residual residual, embedding_.Forward(context, embedded));
  RETURN_IF_ERROR(observer.AfterUnit(0, Pass::kForward));
  // The residual's sum lives in the activations of the unit that made it, so
  // two blocks' are held at a time.
  BlockActivations previous;
  int unit = 0;
  for (const std::unique_ptr<TransformerBlock>& block : blocks_) {
    BlockActivations current;
    RETURN_IF_ERROR(observer.BeforeUnit(++unit, Pass::kForward));
    ASSIGN_OR_RETURN(residual,
                     block->Forward(context, std::move(residual), current));
    RETURN_IF_ERROR(observer.AfterUnit(unit, Pass::kForward));
    previous = std::move(current);
    embedded.Reset();
  }
  RETURN_IF_ERROR(observer.BeforeUnit(units() - 1, Pass::kForward));
  RETURN_IF_ERROR(head(std::move(residual)));
  return observer.AfterUnit(units() - 1, Pass::kForward);
}

absl::Status TransformerModel::Evaluate(const PassContext& context,
                                        LossSums& sums,
                                        UnitObserver& observer) const {
  return ForwardOnly(context, observer, [&](Residual residual) {
    return head_->Evaluate(context, std::move(residual), sums);
  });
}

absl::StatusOr<OwnedTensor> TransformerModel::Logits(
    const PassContext& context, UnitObserver& observer) const {
  OwnedTensor logits;
  RETURN_IF_ERROR(
      ForwardOnly(context, observer, [&](Residual residual) -> absl::Status {
        ASSIGN_OR_RETURN(logits, head_->Logits(context, std::move(residual)));
        return absl::OkStatus();
      }));
  return logits;
}

}  // namespace lockstep
