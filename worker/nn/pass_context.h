// What every module's forward and backward needs to know of the pass.
#ifndef LOCKSTEP_WORKER_NN_PASS_CONTEXT_H_
#define LOCKSTEP_WORKER_NN_PASS_CONTEXT_H_

#include <cstdint>

#include "kernels/ops/dropout.h"
#include "kernels/owned_tensor.h"
#include "kernels/step_scalars.h"
#include "kernels/stream.h"
#include "lockstep/v1/job.pb.h"
#include "worker/nn/device_batch.h"
#include "worker/nn/sequence_attention.h"
#include "worker/nn/tensor_regions.h"

namespace lockstep {

struct PassContext {
  Stream& stream;
  // Of activations: fp32 or bf16.
  DType dtype = DType::kFloat32;
  // In device memory.
  const StepScalars* scalars = nullptr;
  const DeviceBatch& batch;
  TensorRegions& regions;
  SequenceAttention& attention;
  // Of dropout; 0 in evaluation.
  float dropout = 0.0f;
  uint64_t seed = 0;
  // What backward computes again instead of keeping it: none, selective
  // (attention's result) or full (all of a block but its input).
  v1::ActivationCheckpoint checkpoint = v1::ACTIVATION_CHECKPOINT_NONE;

  // An activation of (rows, cols), rows padded.
  absl::StatusOr<OwnedTensor> Activation(int64_t rows, int64_t cols) const {
    return AllocateTensor(stream, dtype, {rows, cols},
                          MemoryCategory::kActivation, RowPadding::kPadded);
  }
  // Statistics of a row: (n,) fp32.
  absl::StatusOr<OwnedTensor> Statistics(int64_t n) const {
    return AllocateTensor(stream, DType::kFloat32, {n},
                          MemoryCategory::kActivation, RowPadding::kDense);
  }
  // Of all rows, and of this rank's rows of the residual stream.
  Dropout DropoutAt(uint64_t site) const {
    return {dropout, SiteKey(seed, site), scalars, batch.origin};
  }
  Dropout ResidualDropoutAt(uint64_t site) const {
    return {dropout, SiteKey(seed, site), scalars, batch.residual_origin};
  }
};

// Places at which values are dropped, unique in a model.
enum class DropoutSite : uint64_t {
  kEmbedding = 0,
  kAttentionWeights = 1,
  kAttentionOutput = 2,
  kFeedForwardOutput = 3,
};
constexpr uint64_t SiteOf(int unit, DropoutSite site) {
  return static_cast<uint64_t>(unit) * 8 + static_cast<uint64_t>(site);
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_PASS_CONTEXT_H_
