// Ring attention: see context_parallel.h.
#ifndef LOCKSTEP_WORKER_PARALLEL_CONTEXT_RING_ATTENTION_H_
#define LOCKSTEP_WORKER_PARALLEL_CONTEXT_RING_ATTENTION_H_

#include <memory>
#include <vector>

#include "worker/dist/process_group.h"
#include "worker/nn/sequence_attention.h"

namespace lockstep {

class RingAttention : public SequenceAttention {
 public:
  explicit RingAttention(ProcessGroup& group) : group_(group) {}

  absl::StatusOr<OwnedTensor> Forward(const PassContext& context,
                                      const AttentionHeads& heads,
                                      const Tensor& qkv,
                                      const Tensor& out) override;
  absl::Status Backward(const PassContext& context, const AttentionHeads& heads,
                        const Tensor& dout, const Tensor& qkv,
                        const Tensor& out, const Tensor& lse,
                        const Tensor& dqkv) override;

 private:
  // One of this rank's chunks of queries and one of another's of keys, which
  // some of them see.
  struct Pair {
    int64_t query_chunk = 0;  // among all
    int64_t key_chunk = 0;
    int64_t query_half = 0;  // of this rank's two
    int64_t key_half = 0;    // of its owner's two
  };
  // By the keys of rank `owner`.
  std::vector<Pair> PairsWith(int owner) const;
  int64_t ChunkOf(int rank, int half) const {
    return half == 0 ? rank : 2 * group_.size() - 1 - rank;
  }
  // The rank whose keys are here after `step` steps.
  int OwnerAt(int step) const {
    return (group_.rank() - step + group_.size()) % group_.size();
  }
  AttentionShape PairShape(const PassContext& context,
                           const AttentionHeads& heads, const Pair& pair) const;
  // Sends to the next rank, receives from the one before.
  std::unique_ptr<Work> Rotate(const Tensor& from, const Tensor& to) const;
  // A copy of keys and values, (n, 2 KV D), that can travel.
  absl::StatusOr<OwnedTensor> KeysAndValues(const PassContext& context,
                                            const AttentionHeads& heads,
                                            const Tensor& qkv) const;

  ProcessGroup& group_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_PARALLEL_CONTEXT_RING_ATTENTION_H_
