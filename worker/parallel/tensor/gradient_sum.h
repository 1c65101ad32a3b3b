// GradientSum: gradients of which each rank of tensor parallelism makes a part,
// as its rows of the sequence give it (the norms' under sequence parallelism),
// are summed over those ranks before data parallelism takes them up
// (Korthikanti et al., arXiv:2205.05198, section 4.2.2).
#ifndef LOCKSTEP_WORKER_PARALLEL_TENSOR_GRADIENT_SUM_H_
#define LOCKSTEP_WORKER_PARALLEL_TENSOR_GRADIENT_SUM_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "worker/dist/process_group.h"
#include "worker/nn/parameter_store.h"
#include "worker/parallel/data/data_parallel.h"

namespace lockstep {

// `inner` wrapped so, or itself where `store` has no such gradients. `group`
// and `store` must outlive it.
std::unique_ptr<DataParallel> WithGradientSum(
    ProcessGroup& group, const ParameterStore& store,
    std::unique_ptr<DataParallel> inner);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_PARALLEL_TENSOR_GRADIENT_SUM_H_
