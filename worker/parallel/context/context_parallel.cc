#include "worker/parallel/context/context_parallel.h"

#include "worker/parallel/context/ring_attention.h"
#include "worker/parallel/context/ulysses_attention.h"

namespace lockstep {

std::unique_ptr<SequenceAttention> MakeSequenceAttention(
    ProcessGroup& group, v1::ContextParallelKind kind) {
  if (group.size() == 1) return std::make_unique<LocalAttention>();
  if (kind == v1::CONTEXT_PARALLEL_KIND_ULYSSES) {
    return std::make_unique<UlyssesAttention>(group);
  }
  return std::make_unique<RingAttention>(group);
}

ContextCut CutOf(const ProcessGroup& group, v1::ContextParallelKind kind) {
  if (group.size() == 1) return {};
  if (kind == v1::CONTEXT_PARALLEL_KIND_ULYSSES) {
    return {group.size(), {group.rank()}};
  }
  const int64_t chunks = 2 * group.size();
  return {chunks, {group.rank(), chunks - 1 - group.rank()}};
}

}  // namespace lockstep
