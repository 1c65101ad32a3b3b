// TransformerModel: embedding, blocks and head, or those of one pipeline stage.
// Single-device code: it knows no ranks. Parallel wrappers watch it unit by
// unit (UnitObserver) and join what ranks compute a part of each
// (TensorRegions).
#ifndef LOCKSTEP_WORKER_NN_TRANSFORMER_MODEL_H_
#define LOCKSTEP_WORKER_NN_TRANSFORMER_MODEL_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/model_part.h"
#include "worker/nn/embedding.h"
#include "worker/nn/head.h"
#include "worker/nn/parameter_store.h"
#include "worker/nn/pass_context.h"
#include "worker/nn/transformer_block.h"
#include "worker/nn/unit_observer.h"

namespace lockstep {

// What one micro-batch keeps between forward and backward.
struct ModelActivations {
  // (n, C) what the first block takes.
  OwnedTensor input;
  std::vector<BlockActivations> blocks;
  // What the head takes.
  Residual output;
};

class TransformerModel {
 public:
  // `units`: of `part`'s units, those of this stage. `store` holds the tensors
  // of DescribePart(part) and must outlive this.
  TransformerModel(const ModelPart& part, const Portion& units,
                   const ParameterStore& store);

  bool has_embedding() const { return embedding_.has_value(); }
  bool has_head() const { return head_ != nullptr; }
  int64_t width() const { return width_; }

  // Forward, keeping what backward takes. `input`: what the stage before gave,
  // (n, C), empty for the first one. Returns what the next stage takes, (n, C),
  // empty for the last one: its head is left to Backward.
  absl::StatusOr<OwnedTensor> Forward(const PassContext& context,
                                      OwnedTensor input,
                                      ModelActivations& saved,
                                      UnitObserver& observer) const;
  // Backward; the head's loss is added to `sums`. `doutput`: gradient of what
  // Forward returned. Returns the gradient of its input, empty for the first
  // stage. Adds to the store's gradients and frees `saved`.
  absl::StatusOr<OwnedTensor> Backward(const PassContext& context,
                                       ModelActivations& saved,
                                       OwnedTensor doutput, LossSums& sums,
                                       UnitObserver& observer) const;
  // The same in two steps: the gradients of the blocks' matrices come with the
  // second, which frees `saved`.
  absl::StatusOr<OwnedTensor> BackwardInput(const PassContext& context,
                                            ModelActivations& saved,
                                            OwnedTensor doutput, LossSums& sums,
                                            UnitObserver& observer) const;
  absl::Status BackwardMatrices(const PassContext& context,
                                ModelActivations& saved,
                                UnitObserver& observer) const;

  // Forward alone. Input and result as Forward's; the last stage adds to `sums`
  // and returns nothing, or returns fp32 logits of the last row (1, V) or of
  // each sample (S, classes).
  absl::StatusOr<OwnedTensor> Evaluate(const PassContext& context,
                                       OwnedTensor input, LossSums& sums,
                                       UnitObserver& observer) const;
  absl::StatusOr<OwnedTensor> Logits(const PassContext& context,
                                     OwnedTensor input,
                                     UnitObserver& observer) const;

  // The visits of those without computing anything: what a rank does while
  // others compute and it has no data.
  absl::Status VisitForward(UnitObserver& observer) const;
  absl::Status VisitBackward(UnitObserver& observer) const;
  absl::Status VisitBackwardInput(UnitObserver& observer) const;
  absl::Status VisitBackwardMatrices(UnitObserver& observer) const;
  absl::Status VisitEvaluate(UnitObserver& observer) const;

 private:
  int head_unit() const { return static_cast<int>(units_.end) - 1; }
  int UnitOf(size_t block) const {
    return first_block_ + static_cast<int>(block);
  }
  absl::StatusOr<OwnedTensor> BackwardThrough(const PassContext& context,
                                              ModelActivations& saved,
                                              OwnedTensor doutput,
                                              LossSums& sums, Pass blocks,
                                              UnitObserver& observer) const;
  absl::Status VisitBackwardThrough(Pass blocks, UnitObserver& observer) const;
  // Result of all blocks without keeping their activations.
  absl::StatusOr<OwnedTensor> ForwardOnly(
      const PassContext& context, OwnedTensor input, UnitObserver& observer,
      absl::FunctionRef<absl::StatusOr<OwnedTensor>(Residual)> head) const;

  const int64_t width_;
  const Portion units_;
  int first_block_ = 0;
  std::optional<Embedding> embedding_;
  std::vector<std::unique_ptr<TransformerBlock>> blocks_;
  std::unique_ptr<Head> head_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_TRANSFORMER_MODEL_H_
