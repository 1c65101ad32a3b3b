// Attention in fp64, by its definition and with the whole score matrix, and the
// gradients of it. Slow and clear; checked against finite differences.
#ifndef LOCKSTEP_TESTS_UNIT_KERNELS_ATTENTION_REFERENCE_H_
#define LOCKSTEP_TESTS_UNIT_KERNELS_ATTENTION_REFERENCE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/unit/kernels/kernel_test.h"

namespace lockstep {

struct ReferenceShape {
  int64_t heads = 1;
  int64_t kv_heads = 1;
  int64_t head_width = 8;
  double scale = 1.0;
  bool causal = true;
  int64_t window = 0;
  int64_t query_offset = 0;
  int64_t key_offset = 0;
  std::vector<int32_t> query_bounds = {};
  std::vector<int32_t> key_bounds = {};
  // Factor (0 or 1 / (1 - p)) of the weight of (head, query row, index of the
  // key within its segment); absent: nothing is dropped.
  std::function<double(int64_t head, int64_t query, int64_t key)> factor = {};
};

struct ReferenceForward {
  Matrix out;  // (N, H D)
  Matrix lse;  // (H, N)
};
ReferenceForward AttentionReference(const ReferenceShape& shape,
                                    const Matrix& q, const Matrix& k,
                                    const Matrix& v);

struct ReferenceGradients {
  Matrix dq, dk, dv;
};
ReferenceGradients AttentionReferenceBackward(const ReferenceShape& shape,
                                              const Matrix& dout,
                                              const Matrix& q, const Matrix& k,
                                              const Matrix& v);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_KERNELS_ATTENTION_REFERENCE_H_
