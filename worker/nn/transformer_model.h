// TransformerModel: embedding, blocks and head. Single-device code: it knows no
// ranks. Parallel wrappers watch it unit by unit (UnitObserver) and join what
// ranks compute a part of each (TensorRegions).
#ifndef LOCKSTEP_WORKER_NN_TRANSFORMER_MODEL_H_
#define LOCKSTEP_WORKER_NN_TRANSFORMER_MODEL_H_

#include <memory>
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

class TransformerModel {
 public:
  // `store` holds the tensors of DescribePart(part) and must outlive this.
  TransformerModel(const ModelPart& part, const ParameterStore& store);

  // One micro-batch, forward and backward: adds to `sums` and to the store's
  // gradients.
  absl::Status ForwardBackward(const PassContext& context, LossSums& sums,
                               UnitObserver& observer) const;
  // Forward alone; adds to `sums`.
  absl::Status Evaluate(const PassContext& context, LossSums& sums,
                        UnitObserver& observer) const;
  // fp32 logits of the last row (1, V), or of each sample (S, classes).
  absl::StatusOr<OwnedTensor> Logits(const PassContext& context,
                                     UnitObserver& observer) const;

  // Number of units: blocks + 2.
  int units() const { return static_cast<int>(blocks_.size()) + 2; }

 private:
  // Result of all blocks without keeping their activations.
  absl::Status ForwardOnly(
      const PassContext& context, UnitObserver& observer,
      absl::FunctionRef<absl::Status(Residual)> head) const;

  const Embedding embedding_;
  std::vector<std::unique_ptr<TransformerBlock>> blocks_;
  const std::unique_ptr<Head> head_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_TRANSFORMER_MODEL_H_
