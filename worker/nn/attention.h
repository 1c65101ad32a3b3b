// Self-attention of one block: q, k and v in one product, rotary positions
// where the family has them, attention, output product. Single-device code.
#ifndef LOCKSTEP_WORKER_NN_ATTENTION_H_
#define LOCKSTEP_WORKER_NN_ATTENTION_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/spec/model_spec.h"
#include "kernels/ops/attention.h"
#include "worker/nn/linear.h"
#include "worker/nn/parameter_store.h"
#include "worker/nn/pass_context.h"

namespace lockstep {

struct AttentionActivations {
  OwnedTensor qkv;  // (N, (H + 2 KV) D), q and k rotated
  OwnedTensor out;  // (N, H D)
  OwnedTensor lse;  // (H, N) fp32
};

class Attention {
 public:
  // `prefix`: "blocks.3.attention."; `unit`: for dropout sites.
  Attention(const ModelSpec& spec, const ParameterStore& store,
            const std::string& prefix, int unit);

  //   x: (N, C), kept by the caller for backward   y: (N, C)
  absl::Status Forward(const PassContext& context, const Tensor& x,
                       AttentionActivations& saved, const Tensor& y) const;
  // Attention's result again, from saved.qkv: the same bits.
  absl::Status Restore(const PassContext& context,
                       AttentionActivations& saved) const;
  // Writes dx (not the memory of dy); frees `saved`.
  absl::Status Backward(const PassContext& context, const Tensor& x,
                        AttentionActivations& saved, const Tensor& dy,
                        const Tensor& dx) const;

 private:
  AttentionShape ShapeOf(const PassContext& context) const;
  // Columns of a (N, (H + 2 KV) D) matrix.
  Tensor Queries(const Tensor& qkv) const;
  Tensor Keys(const Tensor& qkv) const;
  Tensor Values(const Tensor& qkv) const;

  const int64_t heads_;
  const int64_t kv_heads_;
  const int64_t head_width_;
  // Empty: positions are embedded.
  const std::optional<double> rope_theta_;
  const uint64_t site_;
  const Linear qkv_;
  const Linear output_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_ATTENTION_H_
