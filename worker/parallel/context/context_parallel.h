// Attention of context parallelism: each rank has some rows of every sequence,
// and its queries see the keys of all.
//
// Ulysses (Jacobs et al., arXiv:2309.14509, section 3.1): an all-to-all gives
// each rank all rows of some heads, another gives the results back. Ring (Liu
// et al., arXiv:2310.01889, section 3): keys and values travel from rank to
// rank while queries stay; rows are cut into twice as many chunks as there are
// ranks, and rank r has chunks r and 2P - 1 - r, so that under a causal mask
// all have the same work (Brandon et al., arXiv:2311.09431, and the zigzag
// order of Dubey et al., arXiv:2407.21783, section 3.3.2).
#ifndef LOCKSTEP_WORKER_PARALLEL_CONTEXT_CONTEXT_PARALLEL_H_
#define LOCKSTEP_WORKER_PARALLEL_CONTEXT_CONTEXT_PARALLEL_H_

#include <memory>

#include "lockstep/v1/job.pb.h"
#include "worker/dist/process_group.h"
#include "worker/nn/device_batch.h"
#include "worker/nn/sequence_attention.h"

namespace lockstep {

// Of the ranks that share sequences; `group` must outlive it. One rank has all
// rows.
std::unique_ptr<SequenceAttention> MakeSequenceAttention(
    ProcessGroup& group, v1::ContextParallelKind kind);

// The rows that this rank has.
ContextCut CutOf(const ProcessGroup& group, v1::ContextParallelKind kind);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_PARALLEL_CONTEXT_CONTEXT_PARALLEL_H_
