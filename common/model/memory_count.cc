#include "common/model/memory_count.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/model/logical_tensor.h"
#include "common/model/logit_rows.h"
#include "common/model/segment.h"
#include "common/model/workspace.h"
#include "common/row_stride.h"
#include "common/spec/job_spec.h"

namespace lockstep {
namespace {

// Counts as the engine allocates: see worker/nn for the tensors, and
// kernels/tensor.h for the padding of rows.
class ActivationCounter {
 public:
  ActivationCounter(const ModelSpec& model, DType dtype, int64_t rows)
      : model_(model), dtype_(dtype), rows_(rows) {}

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
  int64_t Vector(int64_t bytes) const { return (bytes + 63) / 64 * 64; }

  // Row statistics and normed rows of one norm.
  int64_t Norm() const {
    return Activation(model_.width) +
           (layer_norm() ? 2 : 1) * Vector(rows_ * 4);
  }
  // What a block keeps between forward and backward. Its input's sum is the
  // first block's embedding.
  int64_t Block(bool first) const {
    const int64_t sums = (first ? 1 : 2) * Activation(model_.width);
    const int64_t attention = Activation(qkv_width()) + Activation(q_width()) +
                              Vector(model_.heads * rows_ * 4);
    const int64_t feed_forward =
        Activation(hidden_width()) + Activation(model_.feed_forward_width);
    return 2 * Norm() + sums + attention + feed_forward;
  }
  // What a block keeps that isn't the last.
  int64_t Kept(bool first, v1::ActivationCheckpoint checkpoint) const {
    switch (checkpoint) {
      case v1::ACTIVATION_CHECKPOINT_FULL:
        // Its input; the first block's is the embedding.
        return first ? 0 : Activation(model_.width);
      case v1::ACTIVATION_CHECKPOINT_SELECTIVE:
        return Block(first) - Activation(q_width()) -
               Vector(model_.heads * rows_ * 4);
      default:
        return Block(first);
    }
  }
  // At the head: the last branch, or its gradient, and a piece of logits.
  int64_t Head(bool bf16) const {
    const int64_t width = Activation(model_.width);
    if (model_.task == v1::TASK_CLASSIFICATION) {
      return Norm() + 3 * width;
    }
    const int64_t logit_rows = std::min(rows_, LogitRows(model_.vocabulary));
    int64_t logits = Matrix(logit_rows, model_.vocabulary, DType::kFloat32);
    if (bf16) logits += Matrix(logit_rows, model_.vocabulary, dtype_);
    // Sum, normed rows, their gradient.
    return Norm() + 2 * width + logits;
  }
  // Beside the saved activations while a block goes backward: the gradient of
  // the sum and of the normed rows, and of the queries, keys and values.
  int64_t BackwardExtra() const {
    const int64_t width = Activation(model_.width);
    return 2 * width + Activation(qkv_width()) +
           (model_.dropout > 0 ? width : 0);
  }

 private:
  const ModelSpec& model_;
  const DType dtype_;
  const int64_t rows_;
};

// What a rank keeps of parameters, gradients and optimizer states by the stage
// of sharding, and what it gathers: as worker/nn/parameter_store and
// worker/parallel/data allocate.
class StateCounter {
 public:
  StateCounter(const ModelSpec& model, const TrainingSpec& training,
               const v1::Layout& layout)
      : ranks_(layout.fsdp()),
        stage_(layout.fsdp() > 1 ? layout.zero_stage() : 0),
        replicas_(static_cast<int>(layout.dp())),
        copies_(training.precision == v1::PRECISION_BF16),
        tied_(model.task == v1::TASK_LANGUAGE_MODEL && model.tied_embeddings),
        segments_(
            PlanSegments(DescribeModel(model), static_cast<int>(ranks_))) {}

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
  // Units gathered at a time, gradients on their way to their shards, and what
  // collectives take.
  int64_t Buffers() const {
    int64_t reduced = 0;
    for (const Segment& segment : segments_) {
      // Buckets of whole gradients may join all of them.
      reduced = stage_ == 0 ? reduced + 4 * Whole(segment)
                            : std::max(reduced, 4 * Whole(segment));
    }
    return std::max(ReduceScratchBytes(reduced, static_cast<int>(ranks_)),
                    ReduceScratchBytes(reduced, replicas_)) +
           Gathered();
  }

 private:
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
  const int64_t rows = layout.micro_batch() * training.sequence_length;
  const ActivationCounter count(model, dtype, rows);

  v1::MemoryReport report;
  const StateCounter states(model, training, layout);
  report.set_parameters_bytes(states.Parameters());
  report.set_gradients_bytes(states.Gradients());
  const bool two_moments =
      training.optimizer.name == v1::OPTIMIZER_NAME_ADAMW ||
      training.optimizer.name == v1::OPTIMIZER_NAME_LAMB;
  report.set_optimizer_bytes(states.States(two_moments ? 8 : 4));

  // All blocks but the last keep what isn't computed again; while a block goes
  // forward, the one before it still has all.
  const int64_t width = count.Activation(model.width);
  int64_t saved = width + count.Block(model.layers == 1);
  for (int64_t layer = 0; layer + 1 < model.layers; ++layer) {
    saved += count.Kept(layer == 0, layout.activation_checkpoint());
  }
  const int64_t discarded =
      model.layers < 2
          ? 0
          : count.Block(model.layers == 2) -
                count.Kept(model.layers == 2, layout.activation_checkpoint());
  const int64_t at_last_forward = saved + discarded + width;
  const int64_t at_head = saved + width + count.Head(bf16);
  const int64_t at_last_block = saved + count.BackwardExtra();
  report.set_activations_bytes(
      std::max({at_head, at_last_block, at_last_forward}));
  // Staged index tensors, what is gathered and reduced, what ops take.
  const int64_t kept = count.Vector(rows * 4 * 6) + states.Buffers();
  const int64_t taken = OpWorkspaceBytes(model, training, rows);
  report.set_buffers_bytes(kept + taken);
  // Attention and norms take most in the blocks, where activations are not at
  // their most; products of bf16 take it at the head too.
  report.set_peak_bytes(
      report.parameters_bytes() + report.gradients_bytes() +
      report.optimizer_bytes() + kept +
      std::max({at_head + (bf16 ? taken : 0), at_last_block + taken,
                at_last_forward + taken}));
  return report;
}

double TrainingFlopsPerToken(const ModelSpec& model, int64_t sequence_length) {
  return 6.0 * static_cast<double>(ParameterCount(model)) +
         12.0 * static_cast<double>(model.layers) *
             static_cast<double>(sequence_length) *
             static_cast<double>(model.heads * model.head_width);
}

}  // namespace lockstep
