#include "common/model/activation_count.h"

#include <algorithm>

#include "common/model/logit_rows.h"
#include "common/row_stride.h"

namespace lockstep {
namespace {

// Of `rows` rows, padded, those of one rank.
int64_t RowsOf(int64_t rows, const v1::Layout& layout, int64_t row_parts) {
  const bool ring = layout.cp_kind() != v1::CONTEXT_PARALLEL_KIND_ULYSSES;
  const int64_t chunks = layout.cp() == 1 ? 1 : layout.cp() * (ring ? 2 : 1);
  const int64_t multiple = chunks * row_parts;
  return (rows + multiple - 1) / multiple * multiple / layout.cp();
}

}  // namespace

ActivationCounter::ActivationCounter(const ModelPart& part,
                                     const Portion& units, DType dtype,
                                     int64_t rows, const v1::Layout& layout)
    : part_(part),
      model_(part.local),
      units_(units),
      dtype_(dtype),
      context_ranks_(layout.cp()),
      context_kind_(layout.cp_kind()),
      row_parts_(layout.sequence_parallel() ? layout.tp() : 1),
      rows_(RowsOf(rows, layout, row_parts_)),
      own_rows_(rows_ / row_parts_),
      checkpoint_(layout.activation_checkpoint()) {}

int64_t ActivationCounter::blocks() const {
  return units_.size() - (has_embedding() ? 1 : 0) - (has_head() ? 1 : 0);
}

int64_t ActivationCounter::qkv_width() const {
  return (model_.heads + 2 * model_.kv_heads) * model_.head_width;
}

int64_t ActivationCounter::hidden_width() const {
  return layer_norm() ? model_.feed_forward_width
                      : 2 * model_.feed_forward_width;
}

int64_t ActivationCounter::Matrix(int64_t rows, int64_t cols,
                                  DType dtype) const {
  return Vector(rows * PaddedRowStride(cols, dtype) * SizeOf(dtype));
}

int64_t ActivationCounter::Norm() const {
  return Own() + (layer_norm() ? 2 : 1) * Statistics(own_rows_);
}

int64_t ActivationCounter::Attention() const {
  return Activation(qkv_width()) + Activation(q_width()) + SoftmaxSums();
}

int64_t ActivationCounter::SoftmaxSums() const {
  return LargestShare(Statistics(model_.heads * rows_));
}

int64_t ActivationCounter::LargestShare(int64_t bytes) const {
  if (context_ranks_ == 1 ||
      context_kind_ != v1::CONTEXT_PARALLEL_KIND_ULYSSES) {
    return bytes;
  }
  const int64_t largest =
      (model_.kv_heads + context_ranks_ - 1) / context_ranks_;
  return Vector((bytes * context_ranks_ * largest + model_.kv_heads - 1) /
                model_.kv_heads);
}

int64_t ActivationCounter::ContextForward() const {
  if (context_ranks_ == 1) return 0;
  if (context_kind_ == v1::CONTEXT_PARALLEL_KIND_ULYSSES) {
    // Packed for the others and whole, then the result and packed again.
    return LargestShare(Activation(qkv_width())) +
           std::max(
               Activation(qkv_width()),
               LargestShare(Activation(q_width())) + Activation(q_width())) +
           context_ranks_ * 64;
  }
  // Two ranks' keys and values, and a part of the result.
  const int64_t kv_width = 2 * model_.kv_heads * model_.head_width;
  return 2 * Activation(kv_width) + Matrix(rows_ / 2, q_width(), dtype_) +
         Statistics(model_.heads * rows_ / 2);
}

int64_t ActivationCounter::ContextBackward() const {
  if (context_ranks_ == 1) return 0;
  if (context_kind_ == v1::CONTEXT_PARALLEL_KIND_ULYSSES) {
    return Activation(qkv_width()) +
           LargestShare(2 * Activation(qkv_width()) +
                        2 * Activation(q_width())) +
           context_ranks_ * 64;
  }
  const int64_t kv_width = 2 * model_.kv_heads * model_.head_width;
  return 4 * Activation(kv_width) + Matrix(rows_ / 2, q_width(), dtype_) +
         Matrix(rows_ / 2, kv_width, dtype_);
}

int64_t ActivationCounter::FeedForward() const {
  return Activation(hidden_width()) + Activation(model_.feed_forward_width);
}

int64_t ActivationCounter::Block(bool first) const {
  return 2 * Norm() + (first ? 1 : 2) * Own() + Attention() + FeedForward();
}

int64_t ActivationCounter::Kept(bool first) const {
  switch (checkpoint_) {
    case v1::ACTIVATION_CHECKPOINT_FULL:
      // Its input; the first block's is the stage's.
      return first ? 0 : Own();
    case v1::ACTIVATION_CHECKPOINT_SELECTIVE:
      return Block(first) - Activation(q_width()) - SoftmaxSums();
    default:
      return Block(first);
  }
}

int64_t ActivationCounter::Saved() const {
  if (blocks() == 0) return has_head() ? Own() : 0;
  int64_t saved = Own();
  for (int64_t block = 0; block < blocks(); ++block) {
    // Before a head the last block stays whole: its backward comes next.
    const bool whole = has_head() && block + 1 == blocks();
    saved += whole ? Block(block == 0) : Kept(block == 0);
  }
  // The branch that the head takes in.
  return saved + (has_head() ? Own() : 0);
}

int64_t ActivationCounter::AtForward() const {
  if (blocks() == 0) return has_embedding() ? PartialSum() : Saved();
  // The last two blocks have all, and the last one's result is being made, or
  // its attention, before the feed-forward part.
  int64_t saved =
      Own() + std::max(PartialSum(), ContextForward() - FeedForward() - Norm());
  for (int64_t block = 0; block < blocks(); ++block) {
    saved += block + 2 >= blocks() ? Block(block == 0) : Kept(block == 0);
  }
  return saved;
}

int64_t ActivationCounter::Head() const {
  // Norm and sum, the gradient of the normed rows, and a piece of logits.
  if (model_.task == v1::TASK_CLASSIFICATION) return Norm() + Own() + Whole();
  const int64_t logit_rows = std::min(rows_, LogitRows(model_.vocabulary));
  int64_t logits = Matrix(logit_rows, model_.vocabulary, DType::kFloat32);
  if (dtype_ != DType::kFloat32) {
    logits += Matrix(logit_rows, model_.vocabulary, dtype_);
  }
  if (part_.place.ranks > 1) {
    logits += Vector(logit_rows * part_.place.ranks * 16);
  }
  return Norm() + Own() + Whole() + Gathered() + logits;
}

int64_t ActivationCounter::AtHead() const {
  if (!has_head()) return 0;
  // The branch counts as saved until the gradient of the sum takes its place.
  return Saved() + Head() + (blocks() == 0 ? Own() : 0);
}

int64_t ActivationCounter::BackwardOf(int64_t saved) const {
  // Of the sum, and of what dropout let through of it.
  const int64_t gradients = Own() + (model_.dropout > 0 ? Own() : 0);
  const int64_t at_feed_forward = saved + PartialSum() + Gathered();
  const int64_t without_feed_forward = saved - FeedForward() - Norm() - Own();
  const int64_t at_attention =
      without_feed_forward + Activation(q_width()) +
      std::max(Gathered(), Activation(qkv_width()) + ContextBackward());
  const int64_t at_projections = without_feed_forward - Attention() +
                                 Activation(qkv_width()) + PartialSum() +
                                 Gathered();
  return gradients + std::max({at_feed_forward, at_attention, at_projections});
}

int64_t ActivationCounter::AtBackward() const {
  if (blocks() == 0) {
    return Saved() + Own() + (model_.dropout > 0 ? Own() : 0) + Gathered();
  }
  // The last block's activations are all there (again).
  const bool first = blocks() == 1;
  const int64_t branch = has_head() ? Own() : 0;
  const int64_t restored = has_head() ? 0 : Block(first) - Kept(first);
  return BackwardOf(Saved() - branch + restored);
}

int64_t ActivationCounter::BlockForMatrices() const {
  // Normed rows, inputs of the products, and gradients of their results.
  const int64_t hidden = layer_norm() ? Activation(model_.feed_forward_width)
                                      : Activation(hidden_width());
  return 2 * Norm() + Activation(q_width()) + Activation(qkv_width()) +
         Activation(model_.feed_forward_width) + hidden + 2 * Own();
}

int64_t ActivationCounter::SavedForMatrices() const {
  return blocks() * BlockForMatrices();
}

int64_t ActivationCounter::AtBackwardInput() const {
  if (blocks() == 0) return AtBackward();
  // By the first block, those behind it keep what their matrices take; by the
  // last, those before it what they have saved. Besides what both ways take,
  // the gradients that stay.
  const int64_t kept_gradients = BlockForMatrices() - 2 * Norm() -
                                 Activation(q_width()) -
                                 Activation(model_.feed_forward_width);
  const bool first = blocks() == 1;
  const int64_t at_last = AtBackward() + kept_gradients;
  const int64_t at_first = (blocks() - 1) * BlockForMatrices() +
                           BackwardOf(Own() + Block(first)) + kept_gradients;
  return std::max(at_last, at_first);
}

int64_t ActivationCounter::AtBackwardMatrices() const {
  return SavedForMatrices() + 2 * Gathered();
}

}  // namespace lockstep
