// Token and position embedding.
#ifndef LOCKSTEP_KERNELS_OPS_EMBEDDING_H_
#define LOCKSTEP_KERNELS_OPS_EMBEDDING_H_

#include "absl/status/status.h"
#include "kernels/ops/dropout.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace lockstep::ops {

// out[n] = dropout(tokens_weight[token[n] - first_id] +
// positions_weight[position[n]]). A token whose id has no row in tokens_weight
// adds nothing: another rank has it.
//   token, position: (N,) int32   tokens_weight: (V, C)
//   positions_weight: (P, C), or empty   out: (N, C)
// Weights and out are of one dtype, fp32 or bf16, or weights fp32 and out bf16.
// Positions must be in range: the caller has checked them.
absl::Status EmbeddingForward(Stream& stream, const Tensor& token,
                              int64_t first_id, const Tensor& position,
                              const Tensor& tokens_weight,
                              const Tensor& positions_weight,
                              const lockstep::Dropout& dropout,
                              const Tensor& out);

// Adds to the weights' gradients, row order fixed: the result does not depend
// on the number of threads.
//   dout: (N, C)   dtokens: (V, C) fp32   dpositions: (P, C) fp32, or empty
absl::Status EmbeddingBackward(Stream& stream, const Tensor& dout,
                               const Tensor& token, int64_t first_id,
                               const Tensor& position,
                               const lockstep::Dropout& dropout,
                               const Tensor& dtokens, const Tensor& dpositions);

// Mean over the rows of each segment: pooled[s] = mean x[bounds[s]..].
//   x: (N, C)   bounds: (S + 1,) int32   pooled: (S, C)
absl::Status SegmentMeanForward(Stream& stream, const Tensor& x,
                                const Tensor& bounds, const Tensor& pooled);
// dx = gradient spread over the rows; rows outside all segments get 0.
absl::Status SegmentMeanBackward(Stream& stream, const Tensor& dpooled,
                                 const Tensor& bounds, const Tensor& dx);

}  // namespace lockstep::ops

#endif  // LOCKSTEP_KERNELS_OPS_EMBEDDING_H_
