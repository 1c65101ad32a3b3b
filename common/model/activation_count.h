// What the micro-batches on their way through a stage of a model keep in device
// memory, counted as the engine allocates: worker/nn has the tensors, and
// common/row_stride.h the padding of rows. Pure.
#ifndef LOCKSTEP_COMMON_MODEL_ACTIVATION_COUNT_H_
#define LOCKSTEP_COMMON_MODEL_ACTIVATION_COUNT_H_

#include <cstdint>

#include "common/dtype.h"
#include "common/model/model_part.h"
#include "lockstep/v1/step_report.pb.h"

namespace lockstep {

// Of one micro-batch in one stage. All in bytes.
class ActivationCounter {
 public:
  // units: of `part`, those of the stage. rows: of the micro-batch, all ranks'
  // together. `part` must outlive it.
  ActivationCounter(const ModelPart& part, const Portion& units, DType dtype,
                    int64_t rows, const v1::Layout& layout);

  int64_t padded_rows() const { return rows_; }
  // One matrix of all rows, and of this rank's rows of the residual stream:
  // what stages send each other.
  int64_t Whole() const { return Matrix(rows_, model_.width, dtype_); }
  int64_t Own() const { return Matrix(own_rows_, model_.width, dtype_); }

  // Kept between forward and backward.
  int64_t Saved() const;
  // Most while it goes forward, backward, or through the head, what is kept by
  // then included; 0 where the stage has no such part.
  int64_t AtForward() const;
  int64_t AtBackward() const;
  int64_t AtHead() const;
  // Kept between the two steps of a backward that leaves the matrices'
  // gradients for later, and most in each of them.
  int64_t SavedForMatrices() const;
  int64_t AtBackwardInput() const;
  int64_t AtBackwardMatrices() const;

 private:
  bool has_embedding() const { return units_.Contains(0); }
  bool has_head() const { return units_.Contains(part_.whole.layers + 1); }
  int64_t blocks() const;
  bool layer_norm() const { return model_.family == v1::MODEL_FAMILY_GPT2; }
  int64_t q_width() const { return model_.heads * model_.head_width; }
  int64_t qkv_width() const;
  int64_t hidden_width() const;

  int64_t Vector(int64_t bytes) const { return (bytes + 63) / 64 * 64; }
  int64_t Matrix(int64_t rows, int64_t cols, DType dtype) const;
  int64_t Activation(int64_t cols) const { return Matrix(rows_, cols, dtype_); }
  int64_t Statistics(int64_t rows) const { return Vector(rows * 4); }
  // Own rows made whole.
  int64_t Gathered() const { return row_parts_ > 1 ? Whole() : 0; }
  // What attention over other ranks' rows takes beside its input and result.
  int64_t ContextForward() const;
  int64_t ContextBackward() const;
  // This rank's part of a sum over ranks, and its rows of it.
  int64_t PartialSum() const { return Whole() + (row_parts_ > 1 ? Own() : 0); }
  // Row statistics and normed rows of one norm.
  int64_t Norm() const;
  int64_t Attention() const;
  // Log-sum-exps of the softmax.
  int64_t SoftmaxSums() const;
  // Ulysses: `bytes` of even shares of the heads, where the largest share has
  // more.
  int64_t LargestShare(int64_t bytes) const;
  int64_t FeedForward() const;
  // What a block makes; `first`: its input's sum isn't its own.
  int64_t Block(bool first) const;
  // What it keeps once the next one has gone forward.
  int64_t Kept(bool first) const;
  int64_t BlockForMatrices() const;
  // Sums of the branch that a norm takes in, and a piece of logits.
  int64_t Head() const;
  // Beside `saved` while the last block goes backward.
  int64_t BackwardOf(int64_t saved) const;

  const ModelPart& part_;
  const ModelSpec& model_;
  const Portion units_;
  const DType dtype_;
  const int64_t context_ranks_;
  const v1::ContextParallelKind context_kind_;
  const int64_t row_parts_;
  const int64_t rows_;
  const int64_t own_rows_;
  const v1::ActivationCheckpoint checkpoint_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MODEL_ACTIVATION_COUNT_H_
