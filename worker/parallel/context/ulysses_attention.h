// Ulysses attention: see context_parallel.h. Heads go with the key head that
// they share, so there are at most as many ranks as key heads.
#ifndef LOCKSTEP_WORKER_PARALLEL_CONTEXT_ULYSSES_ATTENTION_H_
#define LOCKSTEP_WORKER_PARALLEL_CONTEXT_ULYSSES_ATTENTION_H_

#include "worker/dist/process_group.h"
#include "worker/nn/sequence_attention.h"

namespace lockstep {

class UlyssesAttention : public SequenceAttention {
 public:
  explicit UlyssesAttention(ProcessGroup& group) : group_(group) {}

  absl::StatusOr<OwnedTensor> Forward(const PassContext& context,
                                      const AttentionHeads& heads,
                                      const Tensor& qkv,
                                      const Tensor& out) override;
  absl::Status Backward(const PassContext& context, const AttentionHeads& heads,
                        const Tensor& dout, const Tensor& qkv,
                        const Tensor& out, const Tensor& lse,
                        const Tensor& dqkv) override;

 private:
  // The heads of a rank.
  AttentionHeads HeadsOf(const AttentionHeads& heads, int rank) const;
  // From own rows of all heads to all rows of own heads, (N, own), and back.
  // Columns: queries alone, or queries, keys and values.
  enum class Columns { kQueries, kAll };
  absl::StatusOr<OwnedTensor> ToHeads(const PassContext& context,
                                      const AttentionHeads& heads,
                                      Columns columns,
                                      const Tensor& rows) const;
  absl::Status ToRows(const PassContext& context, const AttentionHeads& heads,
                      Columns columns, const Tensor& whole,
                      const Tensor& rows) const;
  AttentionShape WholeShape(const PassContext& context,
                            const AttentionHeads& own) const;

  ProcessGroup& group_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_PARALLEL_CONTEXT_ULYSSES_ATTENTION_H_
