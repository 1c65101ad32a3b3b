#include "common/model/memory_count.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/model/logit_rows.h"
#include "common/model/model_part.h"
#include "common/model/segment.h"
#include "common/model/workspace.h"
#include "common/row_stride.h"
#include "common/spec/job_spec.h"

namespace lockstep {
namespace {

// Counts as the engine allocates: see worker/nn for the tensors, and
// kernels/tensor.h for the padding of rows. Names are those of the phases of a
// micro-batch: see Peak.
class ActivationCounter {
 public:
  // rows: of the micro-batch; row_parts: in which the residual stream is cut.
  ActivationCounter(const ModelPart& part, DType dtype, int64_t rows,
                    int64_t row_parts)
      : model_(part.local),
        part_(part),
        dtype_(dtype),
        rows_((rows + row_parts - 1) / row_parts * row_parts),
        own_rows_(rows_ / row_parts),
        gathers_(row_parts > 1) {}

  // Most bytes of activations of a forward and backward pass.
  int64_t Peak(v1::ActivationCheckpoint checkpoint) const {
    return std::max({AtHead(checkpoint), AtLastBackward(checkpoint),
                     AtLastForward(checkpoint)});
  }
  // All blocks but the last keep what isn't computed again.
  int64_t Saved(v1::ActivationCheckpoint checkpoint) const {
    int64_t saved = Own() + Block(model_.layers == 1);
    for (int64_t layer = 0; layer + 1 < model_.layers; ++layer) {
      saved += Kept(layer == 0, checkpoint);
    }
    return saved;
  }
  // While a block goes forward, the one before it still has all.
  int64_t AtLastForward(v1::ActivationCheckpoint checkpoint) const {
    const int64_t discarded =
        model_.layers < 2
            ? 0
            : Block(model_.layers == 2) - Kept(model_.layers == 2, checkpoint);
    return Saved(checkpoint) + discarded + PartialSum();
  }
  int64_t AtHead(v1::ActivationCheckpoint checkpoint) const {
    // The last branch, or the gradient of the sum.
    return Saved(checkpoint) + Own() + Head();
  }
  int64_t AtLastBackward(v1::ActivationCheckpoint checkpoint) const {
    const int64_t saved = Saved(checkpoint);
    // Of the sum, and of what dropout let through of it.
    const int64_t gradients = Own() + (model_.dropout > 0 ? Own() : 0);
    const int64_t at_feed_forward = saved + PartialSum() + Gathered();
    const int64_t without_feed_forward = saved - FeedForward() - Norm() - Own();
    const int64_t at_attention = without_feed_forward + Activation(q_width()) +
                                 std::max(Gathered(), Activation(qkv_width()));
    const int64_t at_projections = without_feed_forward - Attention() +
                                   Activation(qkv_width()) + PartialSum() +
                                   Gathered();
    return gradients +
           std::max({at_feed_forward, at_attention, at_projections});
  }
  int64_t padded_rows() const { return rows_; }
  // One matrix of all rows.
  int64_t Whole() const { return Matrix(rows_, model_.width, dtype_); }
  int64_t Vector(int64_t bytes) const { return (bytes + 63) / 64 * 64; }

 private:
  bool layer_norm() const { return model_.family == v1::MODEL_FAMILY_GPT2; }
  int64_t q_width() const { return model_.heads * model_.head_width; }
  int64_t qkv_width() const {
    return (model_.heads + 2 * model_.kv_heads) * model_.head_width;
  }
  int64_t hidden_width() const {
    return layer_norm() ? model_.feed_forward_width
                        : 2 * model_.feed_forward_width;
  }

  int64_t Matrix(int64_t rows, int64_t cols, DType dtype) const {
    return Vector(rows * PaddedRowStride(cols, dtype) * SizeOf(dtype));
  }
  int64_t Activation(int64_t cols) const { return Matrix(rows_, cols, dtype_); }
  // This rank's rows of the residual stream.
  int64_t Own() const { return Matrix(own_rows_, model_.width, dtype_); }
  // Own rows made whole.
  int64_t Gathered() const { return gathers_ ? Whole() : 0; }
  // This rank's part of a sum over ranks, and its rows of it.
  int64_t PartialSum() const { return Whole() + (gathers_ ? Own() : 0); }

  // Row statistics and normed rows of one norm.
  int64_t Norm() const {
    return Own() + (layer_norm() ? 2 : 1) * Vector(own_rows_ * 4);
  }
  int64_t Attention() const {
    return Activation(qkv_width()) + Activation(q_width()) +
           Vector(model_.heads * rows_ * 4);
  }
  int64_t FeedForward() const {
    return Activation(hidden_width()) + Activation(model_.feed_forward_width);
  }
  // What a block keeps between forward and backward. Its input's sum is the
  // first block's embedding.
  int64_t Block(bool first) const {
    return 2 * Norm() + (first ? 1 : 2) * Own() + Attention() + FeedForward();
  }
  // What a block keeps that isn't the last.
  int64_t Kept(bool first, v1::ActivationCheckpoint checkpoint) const {
    switch (checkpoint) {
      case v1::ACTIVATION_CHECKPOINT_FULL:
        // Its input; the first block's is the embedding.
        return first ? 0 : Own();
      case v1::ACTIVATION_CHECKPOINT_SELECTIVE:
        return Block(first) - Activation(q_width()) -
               Vector(model_.heads * rows_ * 4);
      default:
        return Block(first);
    }
  }
  // Sum, normed rows, their gradient, and a piece of logits.
  int64_t Head() const {
    if (model_.task == v1::TASK_CLASSIFICATION) {
      return Norm() + 2 * Own() + Whole();
    }
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

  const ModelSpec& model_;
  const ModelPart& part_;
  const DType dtype_;
  const int64_t rows_;
  const int64_t own_rows_;
  const bool gathers_;
};

// What a rank keeps of parameters, gradients and optimizer states by the stage
// of sharding, and what it gathers: as worker/nn/parameter_store and
// worker/parallel/data allocate.
class StateCounter {
 public:
  StateCounter(const ModelPart& part, const TrainingSpec& training,
               const v1::Layout& layout)
      : ranks_(layout.fsdp()),
        stage_(layout.fsdp() > 1 ? layout.zero_stage() : 0),
        replicas_(static_cast<int>(layout.dp())),
        copies_(training.precision == v1::PRECISION_BF16),
        tied_(part.whole.task == v1::TASK_LANGUAGE_MODEL &&
              part.whole.tied_embeddings),
        segments_(PlanSegments(DescribePart(part), static_cast<int>(ranks_))) {}

  int64_t Parameters() const {
    int64_t bytes = 0;
    for (const Segment& segment : segments_) {
      bytes += (stage_ < 3 ? Whole(segment) : segment.shard_elements) *
               WidthOf(segment);
      if (Copied(segment)) bytes += 4 * segment.shard_elements;
    }
    return bytes;
  }
  int64_t Gradients() const {
    int64_t elements = 0;
    for (const Segment& segment : segments_) {
      elements += stage_ < 2 ? Whole(segment) : segment.shard_elements;
    }
    return 4 * elements;
  }
  int64_t States(int64_t per_element) const {
    int64_t elements = 0;
    for (const Segment& segment : segments_) elements += segment.shard_elements;
    return per_element * elements;
  }
  // Units gathered at a time, and gradients on their way to their shards.
  int64_t Gathered() const {
    if (stage_ < 2) return 0;
    const int units = segments_.back().unit + 1;
    int64_t most = 0;
    for (int unit = 0; unit + 1 < units; ++unit) {
      // Backward: this unit's and the next one's parameters and gradients.
      // What is added to a shard lies beside it for a while.
      int64_t bytes = UnitGradients(unit) + UnitGradients(unit + 1) +
                      UnitGradients(unit + 1) / ranks_ +
                      (unit + 2 == units && tied_ ? UnitGradients(0) : 0);
      if (stage_ == 3) {
        bytes += UnitParameters(unit) + UnitParameters(unit + 1) +
                 (unit + 2 == units && tied_ ? UnitParameters(0) : 0);
      }
      most = std::max(most, bytes);
    }
    return most;
  }
  // What the collectives of data parallelism take.
  int64_t ReduceScratch() const {
    int64_t reduced = 0;
    for (const Segment& segment : segments_) {
      // Buckets of whole gradients may join all of them.
      reduced = stage_ == 0 ? reduced + 4 * Whole(segment)
                            : std::max(reduced, 4 * Whole(segment));
    }
    return std::max(ReduceScratchBytes(reduced, static_cast<int>(ranks_)),
                    ReduceScratchBytes(reduced, replicas_));
  }

 private:
  bool Copied(const Segment& segment) const {
    return copies_ && segment.matrices;
  }
  int64_t WidthOf(const Segment& segment) const {
    return Copied(segment) ? 2 : 4;
  }
  int64_t Whole(const Segment& segment) const {
    return segment.padded_elements(static_cast<int>(ranks_));
  }
  int64_t UnitParameters(int unit) const {
    int64_t bytes = 0;
    for (const Segment& segment : segments_) {
      if (segment.unit == unit) bytes += WidthOf(segment) * Whole(segment);
    }
    return bytes;
  }
  int64_t UnitGradients(int unit) const {
    int64_t bytes = 0;
    for (const Segment& segment : segments_) {
      if (segment.unit == unit) bytes += 4 * Whole(segment);
    }
    return bytes;
  }

  const int64_t ranks_;
  const int64_t stage_;
  const int replicas_;
  const bool copies_;
  const bool tied_;
  const std::vector<Segment> segments_;
};

}  // namespace

v1::MemoryReport CountMemory(const ModelSpec& model,
                             const TrainingSpec& training,
                             const v1::Layout& layout) {
  const bool bf16 = training.precision == v1::PRECISION_BF16;
  const DType dtype = ComputeDType(training.precision);
  // The last rank has the largest portions.
  const auto tp = static_cast<int>(layout.tp());
  const ModelPart part =
      PartOf(model, {tp - 1, tp, layout.sequence_parallel()});
  const ActivationCounter count(part, dtype,
                                layout.micro_batch() * training.sequence_length,
                                layout.sequence_parallel() ? tp : 1);
  const int64_t rows = count.padded_rows();

  v1::MemoryReport report;
  const StateCounter states(part, training, layout);
  report.set_parameters_bytes(states.Parameters());
  report.set_gradients_bytes(states.Gradients());
  const bool two_moments =
      training.optimizer.name == v1::OPTIMIZER_NAME_ADAMW ||
      training.optimizer.name == v1::OPTIMIZER_NAME_LAMB;
  report.set_optimizer_bytes(states.States(two_moments ? 8 : 4));

  const v1::ActivationCheckpoint checkpoint = layout.activation_checkpoint();
  report.set_activations_bytes(count.Peak(checkpoint));
  // Staged index tensors, what is gathered and reduced, what ops take. One
  // collective runs at a time.
  const int64_t kept =
      count.Vector(rows * 4 * 6) + states.Gathered() +
      std::max(states.ReduceScratch(), ReduceScratchBytes(count.Whole(), tp));
  const int64_t taken = OpWorkspaceBytes(part.local, training, rows);
  report.set_buffers_bytes(kept + taken);
  // Attention and norms take most in the blocks, where activations are not at
  // their most; products of bf16 take it at the head too.
  report.set_peak_bytes(report.parameters_bytes() + report.gradients_bytes() +
                        report.optimizer_bytes() + kept +
                        std::max({count.AtHead(checkpoint) + (bf16 ? taken : 0),
                                  count.AtLastBackward(checkpoint) + taken,
                                  count.AtLastForward(checkpoint) + taken}));
  return report;
}

double TrainingFlopsPerToken(const ModelSpec& model, int64_t sequence_length) {
  return 6.0 * static_cast<double>(ParameterCount(model)) +
         12.0 * static_cast<double>(model.layers) *
             static_cast<double>(sequence_length) *
             static_cast<double>(model.heads * model.head_width);
}

}  // namespace lockstep
