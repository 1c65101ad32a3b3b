// Head of a language model: a logit for each token id at each row. A rank makes
// those of its own ids.
#ifndef LOCKSTEP_WORKER_NN_LANGUAGE_MODEL_HEAD_H_
#define LOCKSTEP_WORKER_NN_LANGUAGE_MODEL_HEAD_H_

#include "worker/nn/head.h"

namespace lockstep {

class LanguageModelHead : public Head {
 public:
  // Uses the token embedding where it is tied.
  LanguageModelHead(const ModelPart& part, const ParameterStore& store);

  absl::StatusOr<OwnedTensor> ForwardBackward(const PassContext& context,
                                              Residual input,
                                              LossSums& sums) const override;
  absl::Status Evaluate(const PassContext& context, Residual input,
                        LossSums& sums) const override;
  absl::StatusOr<OwnedTensor> Logits(const PassContext& context,
                                     Residual input) const override;

 private:
  // Some rows: loss, gradients of the weights, and dx (this rank's part).
  absl::Status ForwardBackwardRows(const PassContext& context, const Tensor& x,
                                   const Tensor& targets, const Tensor& logits,
                                   const Tensor& dx, LossSums& sums) const;

  const int64_t first_id_;
  const int64_t vocabulary_;
  // Of the ids, that a rank has: all ranks take the same rows at a time.
  const int64_t largest_share_;
  const ResidualNorm norm_;
  const Linear output_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LANGUAGE_MODEL_HEAD_H_
