// Bf16Matmul: bf16 products by oneDNN's matmul primitives, which are kept by
// shape, strides and types: making one takes 0.2 to 4 ms. The cache holds at
// most kCapacity of them and starts anew when it is full.
//
// Threads: the compute thread only. Errors: INTERNAL where oneDNN fails;
// RESOURCE_EXHAUSTED where its scratchpad, counted as a buffer, doesn't fit.
#ifndef LOCKSTEP_KERNELS_CPU_BF16_MATMUL_H_
#define LOCKSTEP_KERNELS_CPU_BF16_MATMUL_H_

#include <memory>

#include "absl/status/status.h"
#include "kernels/ops/matmul.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace lockstep::cpu {

class Bf16Matmul {
 public:
  static constexpr int kCapacity = 1024;

  Bf16Matmul();
  ~Bf16Matmul();
  // Arguments as of ops::Matmul; all extents are positive.
  absl::Status Run(Stream& stream, const Tensor& a, Transpose transpose_a,
                   const Tensor& b, Transpose transpose_b, const Tensor& bias,
                   Accumulate accumulate, const Tensor& out);

 private:
  struct Cache;
  std::unique_ptr<Cache> cache_;
};

}  // namespace lockstep::cpu

#endif  // LOCKSTEP_KERNELS_CPU_BF16_MATMUL_H_
