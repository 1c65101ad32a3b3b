// Head of a classifier: mean over the rows of each sample, then a linear layer
// with bias to a logit for each class (docs/decisions).
#ifndef LOCKSTEP_WORKER_NN_CLASSIFICATION_HEAD_H_
#define LOCKSTEP_WORKER_NN_CLASSIFICATION_HEAD_H_

#include "worker/nn/head.h"

namespace lockstep {

class ClassificationHead : public Head {
 public:
  ClassificationHead(const ModelPart& part, const ParameterStore& store);

  absl::StatusOr<OwnedTensor> ForwardBackward(const PassContext& context,
                                              Residual input,
                                              LossSums& sums) const override;
  absl::Status Evaluate(const PassContext& context, Residual input,
                        LossSums& sums) const override;
  absl::StatusOr<OwnedTensor> Logits(const PassContext& context,
                                     Residual input) const override;

 private:
  // Norm and pooling; pooled: (S, C).
  absl::StatusOr<OwnedTensor> Pool(const PassContext& context, Residual input,
                                   NormActivations& normed) const;
  absl::StatusOr<OwnedTensor> LogitsOf(const PassContext& context,
                                       const Tensor& pooled) const;

  const ResidualNorm norm_;
  const Linear output_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_CLASSIFICATION_HEAD_H_
