#include "worker/nn/transformer_model.h"

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "kernels/ops/elementwise.h"
#include "worker/nn/classification_head.h"
#include "worker/nn/language_model_head.h"

namespace lockstep {
namespace {

absl::Status Visit(int unit, Pass pass, UnitObserver& observer) {
  RETURN_IF_ERROR(observer.BeforeUnit(unit, pass));
  return observer.AfterUnit(unit, pass);
}

// The residual as one tensor, for another stage.
absl::StatusOr<OwnedTensor> Sum(const PassContext& context, Residual residual) {
  OwnedTensor branch = std::move(residual.branch);
  if (context.dropout > 0.0f) {
    RETURN_IF_ERROR(ops::Dropout(context.stream, branch,
                                 context.ResidualDropoutAt(residual.site), 0,
                                 branch));
  }
  RETURN_IF_ERROR(ops::Add(context.stream, residual.sum, branch, branch));
  return branch;
}

}  // namespace

std::unique_ptr<Head> MakeHead(const ModelPart& part,
                               const ParameterStore& store) {
  if (part.local.task == v1::TASK_CLASSIFICATION) {
    return std::make_unique<ClassificationHead>(part, store);
  }
  return std::make_unique<LanguageModelHead>(part, store);
}

TransformerModel::TransformerModel(const ModelPart& part, const Portion& units,
                                   const ParameterStore& store)
    : width_(part.local.width), units_(units) {
  const int64_t head = part.whole.layers + 1;
  if (units.Contains(0)) embedding_.emplace(part, store);
  first_block_ = static_cast<int>(std::max<int64_t>(units.begin, 1));
  for (int64_t unit = first_block_; unit < std::min(units.end, head); ++unit) {
    blocks_.push_back(std::make_unique<TransformerBlock>(
        part, store, static_cast<int>(unit)));
  }
  if (units.Contains(head)) head_ = MakeHead(part, store);
}

absl::StatusOr<OwnedTensor> TransformerModel::Forward(
    const PassContext& context, OwnedTensor input, ModelActivations& saved,
    UnitObserver& observer) const {
  Residual residual;
  if (has_embedding()) {
    RETURN_IF_ERROR(observer.BeforeUnit(0, Pass::kForward));
    ASSIGN_OR_RETURN(residual, embedding_->Forward(context, saved.input));
    RETURN_IF_ERROR(observer.AfterUnit(0, Pass::kForward));
  } else {
    saved.input = std::move(input);
    residual.sum = saved.input;
  }
  saved.blocks.resize(blocks_.size());
  for (size_t i = 0; i < blocks_.size(); ++i) {
    RETURN_IF_ERROR(observer.BeforeUnit(UnitOf(i), Pass::kForward));
    ASSIGN_OR_RETURN(residual, blocks_[i]->Forward(context, std::move(residual),
                                                   saved.blocks[i]));
    RETURN_IF_ERROR(observer.AfterUnit(UnitOf(i), Pass::kForward));
    if (i > 0) blocks_[i - 1]->Discard(context, saved.blocks[i - 1]);
  }
  if (has_head()) {
    // The last block's are needed at once.
    saved.output = std::move(residual);
    return OwnedTensor();
  }
  if (blocks_.empty()) return std::move(saved.input);
  ASSIGN_OR_RETURN(OwnedTensor output, Sum(context, std::move(residual)));
  blocks_.back()->Discard(context, saved.blocks.back());
  return output;
}

absl::StatusOr<OwnedTensor> TransformerModel::BackwardThrough(
    const PassContext& context, ModelActivations& saved, OwnedTensor doutput,
    LossSums& sums, Pass blocks, UnitObserver& observer) const {
  OwnedTensor dsum = std::move(doutput);
  if (has_head()) {
    RETURN_IF_ERROR(observer.BeforeUnit(head_unit(), Pass::kBackward));
    ASSIGN_OR_RETURN(
        dsum, head_->ForwardBackward(context, std::move(saved.output), sums));
    RETURN_IF_ERROR(observer.AfterUnit(head_unit(), Pass::kBackward));
  }
  for (size_t i = blocks_.size(); i-- > 0;) {
    RETURN_IF_ERROR(observer.BeforeUnit(UnitOf(i), blocks));
    RETURN_IF_ERROR(blocks_[i]->Restore(context, saved.blocks[i]));
    RETURN_IF_ERROR(
        blocks == Pass::kBackward
            ? blocks_[i]->Backward(context, saved.blocks[i], dsum)
            : blocks_[i]->BackwardInput(context, saved.blocks[i], dsum));
    RETURN_IF_ERROR(observer.AfterUnit(UnitOf(i), blocks));
  }
  saved.input.Reset();
  if (!has_embedding()) return dsum;
  RETURN_IF_ERROR(observer.BeforeUnit(0, Pass::kBackward));
  RETURN_IF_ERROR(embedding_->Backward(context, dsum));
  RETURN_IF_ERROR(observer.AfterUnit(0, Pass::kBackward));
  return OwnedTensor();
}

absl::StatusOr<OwnedTensor> TransformerModel::Backward(
    const PassContext& context, ModelActivations& saved, OwnedTensor doutput,
    LossSums& sums, UnitObserver& observer) const {
  return BackwardThrough(context, saved, std::move(doutput), sums,
                         Pass::kBackward, observer);
}

absl::StatusOr<OwnedTensor> TransformerModel::BackwardInput(
    const PassContext& context, ModelActivations& saved, OwnedTensor doutput,
    LossSums& sums, UnitObserver& observer) const {
  return BackwardThrough(context, saved, std::move(doutput), sums,
                         Pass::kBackwardInput, observer);
}

absl::Status TransformerModel::BackwardMatrices(const PassContext& context,
                                                ModelActivations& saved,
                                                UnitObserver& observer) const {
  for (size_t i = blocks_.size(); i-- > 0;) {
    RETURN_IF_ERROR(observer.BeforeUnit(UnitOf(i), Pass::kBackwardWeights));
    RETURN_IF_ERROR(blocks_[i]->BackwardMatrices(context, saved.blocks[i]));
    RETURN_IF_ERROR(observer.AfterUnit(UnitOf(i), Pass::kBackwardWeights));
  }
  return absl::OkStatus();
}

absl::StatusOr<OwnedTensor> TransformerModel::ForwardOnly(
    const PassContext& context, OwnedTensor input, UnitObserver& observer,
    absl::FunctionRef<absl::StatusOr<OwnedTensor>(Residual)> head) const {
  Residual residual;
  residual.sum = input;
  if (has_embedding()) {
    RETURN_IF_ERROR(observer.BeforeUnit(0, Pass::kForward));
    ASSIGN_OR_RETURN(residual, embedding_->Forward(context, input));
    RETURN_IF_ERROR(observer.AfterUnit(0, Pass::kForward));
  }
  // The residual's sum lives in the activations of the unit that made it, so
  // two blocks' are held at a time.
  BlockActivations previous;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    BlockActivations current;
    RETURN_IF_ERROR(observer.BeforeUnit(UnitOf(i), Pass::kForward));
    ASSIGN_OR_RETURN(
        residual, blocks_[i]->Forward(context, std::move(residual), current));
    RETURN_IF_ERROR(observer.AfterUnit(UnitOf(i), Pass::kForward));
    previous = std::move(current);
    input.Reset();
  }
  if (!has_head()) {
    if (blocks_.empty()) return input;
    return Sum(context, std::move(residual));
  }
  RETURN_IF_ERROR(observer.BeforeUnit(head_unit(), Pass::kForward));
  ASSIGN_OR_RETURN(OwnedTensor result, head(std::move(residual)));
  RETURN_IF_ERROR(observer.AfterUnit(head_unit(), Pass::kForward));
  return result;
}

absl::StatusOr<OwnedTensor> TransformerModel::Evaluate(
    const PassContext& context, OwnedTensor input, LossSums& sums,
    UnitObserver& observer) const {
  return ForwardOnly(
      context, std::move(input), observer,
      [&](Residual residual) -> absl::StatusOr<OwnedTensor> {
        RETURN_IF_ERROR(head_->Evaluate(context, std::move(residual), sums));
        return OwnedTensor();
      });
}

absl::StatusOr<OwnedTensor> TransformerModel::Logits(
    const PassContext& context, OwnedTensor input,
    UnitObserver& observer) const {
  return ForwardOnly(context, std::move(input), observer,
                     [&](Residual residual) {
                       return head_->Logits(context, std::move(residual));
                     });
}

absl::Status TransformerModel::VisitForward(UnitObserver& observer) const {
  if (has_embedding()) RETURN_IF_ERROR(Visit(0, Pass::kForward, observer));
  for (size_t i = 0; i < blocks_.size(); ++i) {
    RETURN_IF_ERROR(Visit(UnitOf(i), Pass::kForward, observer));
  }
  return absl::OkStatus();
}

absl::Status TransformerModel::VisitEvaluate(UnitObserver& observer) const {
  RETURN_IF_ERROR(VisitForward(observer));
  return has_head() ? Visit(head_unit(), Pass::kForward, observer)
                    : absl::OkStatus();
}

absl::Status TransformerModel::VisitBackwardThrough(
    Pass blocks, UnitObserver& observer) const {
  if (has_head()) {
    RETURN_IF_ERROR(Visit(head_unit(), Pass::kBackward, observer));
  }
  for (size_t i = blocks_.size(); i-- > 0;) {
    RETURN_IF_ERROR(Visit(UnitOf(i), blocks, observer));
  }
  return has_embedding() ? Visit(0, Pass::kBackward, observer)
                         : absl::OkStatus();
}

absl::Status TransformerModel::VisitBackward(UnitObserver& observer) const {
  return VisitBackwardThrough(Pass::kBackward, observer);
}

absl::Status TransformerModel::VisitBackwardInput(
    UnitObserver& observer) const {
  return VisitBackwardThrough(Pass::kBackwardInput, observer);
}

absl::Status TransformerModel::VisitBackwardMatrices(
    UnitObserver& observer) const {
  for (size_t i = blocks_.size(); i-- > 0;) {
    RETURN_IF_ERROR(Visit(UnitOf(i), Pass::kBackwardWeights, observer));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
