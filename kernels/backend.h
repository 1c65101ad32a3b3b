// Backend: what one kind of device can do, as one table of function pointers.
// The free functions of kernels/ops/ check their arguments and then call
// through the stream's table; a backend trusts what it gets. The signatures are
// those of the ops, so that the two can't drift apart.
#ifndef LOCKSTEP_KERNELS_BACKEND_H_
#define LOCKSTEP_KERNELS_BACKEND_H_

#include "kernels/ops/attention.h"
#include "kernels/ops/copy.h"
#include "kernels/ops/cross_entropy.h"
#include "kernels/ops/dropout.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/norm.h"
#include "kernels/ops/optimizer.h"

namespace lockstep {

struct Backend {
  // Between host and device.
  decltype(&ops::CopyFromHost) copy_from_host;
  decltype(&ops::CopyToHost) copy_to_host;

  // Element-wise.
  decltype(&ops::Zero) zero;
  decltype(&ops::Fill) fill;
  decltype(&ops::Convert) convert;
  decltype(&ops::Add) add;
  decltype(&ops::Scale) scale;
  decltype(&ops::GeluForward) gelu_forward;
  decltype(&ops::GeluBackward) gelu_backward;
  decltype(&ops::SwigluForward) swiglu_forward;
  decltype(&ops::SwigluBackward) swiglu_backward;
  decltype(&ops::Rotary) rotary;
  decltype(&ops::Dropout) dropout;

  // Matrix products and sums.
  decltype(&ops::Matmul) matmul;
  decltype(&ops::ColumnSum) column_sum;

  // Norms.
  decltype(&ops::NormForward) norm_forward;
  decltype(&ops::ResidualNormForward) residual_norm_forward;
  decltype(&ops::NormBackward) norm_backward;

  // Attention.
  decltype(&ops::AttentionForward) attention_forward;
  decltype(&ops::AttentionBackward) attention_backward;
  decltype(&ops::AttentionMerge) attention_merge;

  // Embedding.
  decltype(&ops::EmbeddingForward) embedding_forward;
  decltype(&ops::EmbeddingBackward) embedding_backward;
  decltype(&ops::SegmentMeanForward) segment_mean_forward;
  decltype(&ops::SegmentMeanBackward) segment_mean_backward;

  // Loss.
  decltype(&ops::CrossEntropy) cross_entropy;
  decltype(&ops::CrossEntropyStatistics) cross_entropy_statistics;
  decltype(&ops::CrossEntropyFromStatistics) cross_entropy_from_statistics;
  decltype(&ops::SumInto) sum_into;

  // Optimizers.
  decltype(&ops::AdamW) adamw;
  decltype(&ops::Sgd) sgd;
  decltype(&ops::Lars) lars;
  decltype(&ops::LambMoments) lamb_moments;
  decltype(&ops::LambApply) lamb_apply;
  decltype(&ops::SumOfSquares) sum_of_squares;
};

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_BACKEND_H_
