#include "kernels/backend.h"

#include "kernels/cpu/cpu_ops.h"

namespace lockstep::cpu {

const Backend& CpuBackend() {
  static constexpr Backend kBackend = {
      .copy_from_host = CopyFromHost,
      .copy_to_host = CopyToHost,
      .zero = Zero,
      .fill = Fill,
      .convert = Convert,
      .add = Add,
      .scale = Scale,
      .gelu_forward = GeluForward,
      .gelu_backward = GeluBackward,
      .swiglu_forward = SwigluForward,
      .swiglu_backward = SwigluBackward,
      .rotary = Rotary,
      .dropout = Dropout,
      .matmul = Matmul,
      .column_sum = ColumnSum,
      .norm_forward = NormForward,
      .residual_norm_forward = ResidualNormForward,
      .norm_backward = NormBackward,
      .attention_forward = AttentionForward,
      .attention_backward = AttentionBackward,
      .attention_merge = AttentionMerge,
      .embedding_forward = EmbeddingForward,
      .embedding_backward = EmbeddingBackward,
      .segment_mean_forward = SegmentMeanForward,
      .segment_mean_backward = SegmentMeanBackward,
      .cross_entropy = CrossEntropy,
      .cross_entropy_statistics = CrossEntropyStatistics,
      .cross_entropy_from_statistics = CrossEntropyFromStatistics,
      .sum_into = SumInto,
      .adamw = AdamW,
      .sgd = Sgd,
      .lars = Lars,
      .lamb_moments = LambMoments,
      .lamb_apply = LambApply,
      .sum_of_squares = SumOfSquares,
  };
  return kBackend;
}

}  // namespace lockstep::cpu
