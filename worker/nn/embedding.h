// Embedding: tokens, and positions where the family embeds them. Unit 0. A rank
// looks up the ids that it has; sums over ranks give the rest.
#ifndef LOCKSTEP_WORKER_NN_EMBEDDING_H_
#define LOCKSTEP_WORKER_NN_EMBEDDING_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/model_part.h"
#include "worker/nn/parameter_store.h"
#include "worker/nn/pass_context.h"
#include "worker/nn/residual.h"

namespace lockstep {

class Embedding {
 public:
  Embedding(const ModelPart& part, const ParameterStore& store);

  // The result's sum lives in `saved`.
  absl::StatusOr<Residual> Forward(const PassContext& context,
                                   OwnedTensor& saved) const;
  // Adds to the gradients.   dsum: (n, C), this rank's rows
  absl::Status Backward(const PassContext& context, const Tensor& dsum) const;

 private:
  const int64_t width_;
  const int64_t first_id_;
  const Parameter tokens_;     // (V, C)
  const Parameter positions_;  // (P, C), or empty
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_EMBEDDING_H_
