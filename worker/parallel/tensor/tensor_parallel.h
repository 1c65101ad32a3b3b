// The regions of tensor parallelism over a process group (worker/nn's
// TensorRegions says what they are for).
//
// Without sequence parallelism every rank holds all rows of the residual
// stream: a sum is an all-reduce, and whole rows are there already. With it
// each holds its own: a sum is a reduce-scatter, rows are gathered.
#ifndef LOCKSTEP_WORKER_PARALLEL_TENSOR_TENSOR_PARALLEL_H_
#define LOCKSTEP_WORKER_PARALLEL_TENSOR_TENSOR_PARALLEL_H_

#include <memory>

#include "worker/dist/process_group.h"
#include "worker/nn/tensor_regions.h"

namespace lockstep {

enum class SequenceParallel : uint8_t { kOff, kOn };

// Of the ranks that share a model's layers; `group` must outlive it. One rank
// has regions that do nothing.
std::unique_ptr<TensorRegions> MakeTensorRegions(ProcessGroup& group,
                                                 SequenceParallel sequence);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_PARALLEL_TENSOR_TENSOR_PARALLEL_H_
